"""A call that reached freed saved tensors: which call freed them, and the carrier of the old part."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from graphwidget.diagnosis.findings import failed_node
from graphwidget.diagnosis.fixes import FIXES
from graphwidget.diagnosis.fixes.cuts.lost import lost_cuts
from graphwidget.diagnosis.fixes.rerun.keeping_blocks import Keeper, keeper
from graphwidget.diagnosis.fixes.second_backward.case import Case, kept_bytes
from graphwidget.diagnosis.fixes.second_backward.ladder import fixes_of
from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.reuse.graph_paths import Tensor, path_to_failure
from graphwidget.diagnosis.reuse.passes.inner import inner_passes
from graphwidget.diagnosis.reuse.reuse import reuse_of
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.reuse.stored import leads_to_store, unseen_carrier
from graphwidget.diagnosis.source.paths import is_code, local
from graphwidget.diagnosis.wording import (
    at,
    in_iteration,
    iteration_text,
    number,
    opening,
    root_name,
    short,
    spoken,
    when,
    where,
)
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record

__all__ = ["explain"]


def explain(record: Record, call: BackwardCall) -> Finding:
    """The finding of a call that failed on freed saved tensors."""
    reuse = reuse_of(record, call)
    if reuse is None:
        return _by_unknown_call(call)
    setting = Setting(reuse)
    carrier = Carrier(setting).path
    lost = next(lost_cuts(setting, [*call.carriers, *([carrier] if carrier is not None else [])]), None)
    call = replace(call, carriers=tuple(path for path in call.carriers if not setting.has_ended(path)))
    case = Case(setting)
    block = _keeping_block(case)
    if block is None and carrier is not None and len(call.carriers) < 2 and carrier not in call.carriers:
        # The name that the carrier had when it was freed may have been given to something else since.
        call = replace(call, carriers=(carrier, *call.carriers))
    fixes = fixes_of(FIXES["second_backward"], case)
    built = Carrier(setting).built_at
    hidden = not call.carriers and not reuse.same_root and block is None
    unseen = unseen_carrier(record, built, fixes) if hidden else None
    said = [*_story(setting, block), *([lost.sentence] if lost is not None else [])]
    if unseen is not None:
        line = f"{short(unseen[1].source)} ({where(unseen[1])})"
        said.append(f"No variable in sight keeps it. {line} computes `{unseen[0]}` from its previous value.")
    return Finding(
        kind="second_backward",
        severity="error",
        text=" ".join(said),
        headline=f"{opening(call.n)} needs saved tensors that {number(reuse.earlier.n)} freed.",
        call=call.n,
        node=call.failed_node or "",
        node_uid=call.failed_uid,
        made_at=failed_node.made_at(reuse.graph, call),
        carriers=call.carriers,
        freed_by=reuse.earlier.n,
        bytes=kept_bytes(reuse),
        path=failed_node.path(reuse.graph, call, setting),
        uids=failed_node.uids(reuse.graph, call),
        fixes=fixes,
        cause=lost.place
        if lost is not None
        else unseen[1]
        if unseen is not None
        else _kept_there(setting, fixes) or built,
        stored_at=Carrier(setting).stored_at,
        names=(*([unseen[0]] if unseen is not None else []), *_names(setting, call.carriers, block)),
    )


def _kept_there(setting: Setting, fixes: Sequence[Fix]) -> Place | None:
    """The line that stores the carrier, if the first fix detaches it there: what made it is right as it is."""
    stored, first = Carrier(setting).stored_at, next(iter(fixes), None)
    there = stored is not None and first is not None and first.id == "detach" and bool(first.edits)
    return stored if there and first is not None and first.at == at(stored) else None


def _keeping_block(case: Case) -> Keeper | None:
    """The `with` that may keep the graph, if nothing else is known that does: its fix is the last resort."""
    found, plan = keeper(case.setting), case.rerun
    return found if found is not None and plan is not None and plan.at == found.at else None


def _names(setting: Setting, carriers: tuple[str, ...], block: Keeper | None) -> tuple[str, ...]:
    """The carrier, or the root that was run again; then the other carriers. Or the block that may keep the graph."""
    carrier = Carrier(setting)
    if block is not None:
        return (*(ast.unparse(item.context_expr) for item in block.block.items), *filter(None, [_module(setting)]))
    named = carrier.path is not None and not setting.reuse.same_root
    first = (carrier.name,) if named else (setting.root_name,)
    return tuple(dict.fromkeys((*first, *map(spoken, carriers))))


def _module(setting: Setting) -> str:
    """The module that ran when the failed node was made, where no variable leads to it; empty: unknown."""
    graph, uid = setting.reuse.graph, setting.reuse.later.failed_uid
    index = graph.index_of.get(uid) if uid is not None and Carrier(setting).path is None else None
    module = graph.module_of(index) if index is not None else None
    return module.path if module is not None else ""


def _by_unknown_call(call: BackwardCall) -> Finding:
    node, path = call.failed_node or "", path_to_failure(call.graph, call) if call.graph is not None else ()
    name = _nearest_name(call, path)
    text = f"{node or 'A node'} needs saved tensors that have been freed. By which call is unknown: it ran before "
    text += "tracking began, or is no longer remembered."
    fixes: tuple[Fix, ...] = ()
    if name:
        advice = f"Compute `{name}` again before this call"
        if _nearest_name(call, path[:1]) != name:
            text += f" `{name}` leads to it."
            advice += f", or cut the graph behind it, `{name}.detach()`, before a new pass starts from it"
        fixes = (Fix("recompute_in_loop", f"{advice}."),)
    return Finding(
        kind="second_backward",
        severity="error",
        text=text,
        headline=f"{opening(call.n)} needs saved tensors that an earlier call freed.",
        call=call.n,
        node=node,
        node_uid=call.failed_uid,
        made_at=call.failed_place,
        carriers=call.carriers,
        freed_by=call.freed_by,
        fixes=fixes,
        names=(name,) if name else (),
    )


def _nearest_name(call: BackwardCall, path: Sequence[Tensor]) -> str:
    """The name of the last tensor on a path that has one; empty where none has."""
    names: dict[Tensor, str] = {}
    for owner in call.graph.owners if call.graph is not None else ():
        if owner.kind != "out" and is_code(local(owner.path)):
            names.setdefault((owner.node, owner.output_nr), spoken(owner.path))
    return next((names[tensor] for tensor in reversed(path) if tensor in names), "")


def _and_stored(record: Record, carrier: Carrier) -> str:
    """Which line keeps it, if it is another one than made it, and the code that made it leads to that line."""
    made, stored = carrier.built_at, carrier.stored_at
    if made is None or stored is None or where(made) == where(stored) or not leads_to_store(record, made, stored):
        return ""
    return f", and stored by {short(stored.source)} ({where(stored)})"


def _story(setting: Setting, block: Keeper | None) -> Iterator[str]:
    """Two or three sentences: where the carrier was made, what freed its node, how it was reached again."""
    reuse, carrier = setting.reuse, Carrier(setting)
    record, earlier, later = reuse.record, reuse.earlier, reuse.later
    node = later.failed_node or "the node"
    if reuse.same_root:
        yield f"{opening(earlier.n)} ({when(record, earlier.place)}) ran backward on `{root_name(earlier)}`."
        yield f"It freed what {node} had saved."
        yield f"{opening(later.n)} {'runs the same graph again' if reuse.runs_again else 'starts inside that graph'}."
        return
    made, passes = carrier.built_at, inner_passes(setting)
    if where(made):
        iteration = passes.of_made if passes is not None else in_iteration(record, made)
        before = setting.made_before_the_inner_loop if passes is not None else not setting.made_in_same_pass
        once = "once, " if setting.in_loop and before and not iteration else ""
        module = f" by `{path}`" if (path := _module(setting)) else ""
        done = "written in place" if carrier.written is not None else "built"
        yield f"`{carrier.name}` was {done} {once}in {where(made)}{module}{iteration}{_and_stored(record, carrier)}."
    # `autograd.grad` inside a model is overlooked: nothing there is called backward.
    quoted = carrier.path is None or earlier.api == "autograd.grad"
    by = f" {short(earlier.place.source)}" if quoted and earlier.place.source else ""
    spot = when(record, earlier.place) if passes is None else f"{where(earlier.place)}{passes.of_earlier}"
    yield f"{opening(earlier.n)}{by} ({spot}) freed what {node} had saved."
    onward = setting.in_loop and (later.place.iteration or 0) > (earlier.place.iteration or 0)
    again = iteration_text(record, later.place).capitalize() if onward else passes.of_later if passes else ""
    again = again or opening(later.n)
    yield f"{again} reaches the same node {'again' if carrier.name == node else f'through `{carrier.name}`'}."
    if block is not None:
        spot = f"In[{block.at[0]}], line {block.at[1]}"
        yield f"No variable keeps it. `{block.head}` ({spot}) is around all passes, and may."
