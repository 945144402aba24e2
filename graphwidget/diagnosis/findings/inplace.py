"""Saved tensors that were modified in place: the tensor, and the line. The call has failed, or would fail."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graphwidget.diagnosis.findings import failed_node
from graphwidget.diagnosis.findings.refusals.makers import calls
from graphwidget.diagnosis.fixes.in_place.inplace import for_inplace
from graphwidget.diagnosis.fixes.second_backward.case import simulate
from graphwidget.diagnosis.reuse.blame import culprit
from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.reuse.inplace_modules import named, with_modules
from graphwidget.diagnosis.reuse.reuse import Reuse
from graphwidget.diagnosis.reuse.setting import Setting
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.in_place.statements import modified
from graphwidget.diagnosis.wording import opening, own_path, place_of, short, when, where
from graphwidget.engine.what_if import anything_stale, reachable
from graphwidget.model import BackwardCall, Finding, Kind, Place, Record, Snapshot, Write

__all__ = ["explain", "would_fail"]

MOST_ROOTS = 20  # roots that are tried: each costs a forecast


def explain(record: Record, call: BackwardCall) -> Finding:
    """Return the finding of a call that failed on a saved tensor that was modified in place."""
    graph = call.graph
    if graph is None:
        return _finding(record, call, None, None, ())
    record = with_modules(record, graph)
    index = graph.index_of.get(call.failed_uid) if call.failed_uid is not None else None
    tensor, writes = culprit(record, graph, index, call.n) if index is not None else (None, ())
    return _finding(record, call, graph, tensor, writes)


def _finding(
    record: Record, call: BackwardCall, graph: Snapshot | None, tensor: str | None, writes: tuple[Write, ...]
) -> Finding:
    node = call.failed_node or ""
    shown = f"`{tensor}`" if tensor else "a tensor"
    story = _story(record, shown, writes, f"{node} had saved it" if node else "it was saved")
    limited = _limited(record, tensor)
    if limited is not None:
        story += f" {short(limited.source)} ({where(limited)}) has `max_norm`: each call shortens rows of it in place."
    retained = _retained(record, call)
    carrier = Carrier(retained) if retained is not None and not retained.reuse.same_root else None
    name = carrier.name if carrier is not None and carrier.path is not None else ""
    older = f" `{name}` was computed before that step." if name and writes and writes[-1].optimizer else ""
    fixes = for_inplace(record, call, graph, writes, retained, tensor) if graph is not None else ()
    return Finding(
        kind="inplace",
        severity="error",
        text=f"{story} Its old values, which the gradient needs, are gone.{older}",
        headline=f"{opening(call.n)} needs {shown} as it was; it has been modified in place.",
        call=call.n,
        node=node,
        node_uid=call.failed_uid,
        made_at=failed_node.made_at(graph, call) if graph is not None else call.failed_place,
        carriers=call.carriers,
        tensor=tensor,
        modified_at=writes[-1].place if writes else limited,
        modified_by=writes[-1].by if writes else "",
        path=failed_node.path(graph, call) if graph is not None else (),
        uids=failed_node.uids(graph, call) if graph is not None else (),
        fixes=fixes,
        names=tuple(filter(None, (tensor, name, _name_there(writes[-1], shown) if writes else ""))),
    )


def _limited(record: Record, tensor: str | None) -> Place | None:
    """The only embedding with `max_norm`, which modifies its own weight when it is called."""
    if tensor is None or not tensor.endswith(".weight"):
        return None
    made = [one for one in calls(record, "Embedding", "EmbeddingBag") if one.argument("max_norm") is not None]
    return place_of(made[0].run, made[0].call.lineno) if len(made) == 1 else None


def _story(record: Record, shown: str, writes: tuple[Write, ...], saved: str) -> str:
    """Return the sentence about the lines that modified a tensor; `saved`: the event that they came after."""
    if not writes:
        first = shown[0].upper() + shown[1:]
        return f"{first} was modified in place after {saved}. By which line is unknown."
    write = writes[-1]
    inside = f" in {named(write.inside)}," if write.inside is not None else ""
    spot = when(record, write.place) + _called_from(write.place)
    there = _name_there(write, shown)
    also = f", there `{there}`," if there and not inside else ""
    story = f"{short(write.by)} ({spot}) modified {shown}{inside}{also} after {saved}."
    if where(writes[0].place) != where(write.place):
        story += f" So did {short(writes[0].by)} ({where(writes[0].place)}) before."
    return story


def _name_there(write: Write, shown: str) -> str:
    """What the line that writes calls the tensor, where that is another name than the one that is shown."""
    found = modified(write.by) or ""
    return "" if source.last_name(found) == source.last_name(shown.strip("`")) else found


def _called_from(place: Place) -> str:
    """Which line called the function of a line in a file; of a cell the line that ran is shown with it."""
    caller = where(place.stack[-1]) if place.stack and place.file is not None else ""
    return f", called from {caller}" if caller else ""


def _retained(record: Record, call: BackwardCall) -> Setting | None:
    """Return the reuse of the latest earlier call that ran the failed node and kept it with `retain_graph`.

    Or the call in whose pass the node was made, without being run: a state was updated once more after the loss.
    """
    graph = call.graph
    if graph is None or call.failed_uid is None:
        return None
    ran = [c for c in record.calls if c.n < call.n and call.failed_uid in c.executed]
    failed = graph.index_of.get(call.failed_uid)
    if not ran and failed is not None:
        seq = graph.seq[failed]
        inside = reachable(graph, (root.node for root in call.roots))
        reached = {graph.uid[i] for i in inside if graph.kind[i] != Kind.ACCUMULATE}
        ran = [c for c in record.calls if c.n < call.n and seq < c.newest_seq and reached.intersection(c.executed)][:1]
    return Setting(Reuse(record, call, ran[-1], graph)) if ran else None


def would_fail(record: Record) -> Iterator[Finding]:
    """Yield findings for roots whose backward would fail now, because a line modified a saved tensor in place.

    After a step, the losses of earlier batches are stale, but nobody intends to run them again. They get no finding:
    the forecast of their button is enough. A loss is different that was never run and shares nodes with a call that
    retained them: that was for another call, and the step came before it. It is said, though it need not be a mistake.
    """
    graph = record.snapshot
    if not anything_stale(graph):
        return
    record = with_modules(record, graph)
    retaining = [call for call in record.calls if call.retain_graph and call.result == "ok"]
    if not retaining and all(map(_is_step, record.writes)):
        return
    told: set[tuple[str, str | None, Place]] = set()  # what one line did to the elements of one container
    for root in graph.roots[:MOST_ROOTS]:
        path = own_path(root)
        if root.node < 0 or path is None or root.numel != 1 or root.known_as:
            continue  # nobody intends to run a root that only an error keeps
        if record.was_run(graph.uid[root.node], graph.seq[root.node]):
            continue
        call = BackwardCall(
            n=len(record.calls),
            place=Place(None, None),
            api="backward",
            retain_graph=False,
            create_graph=False,
            roots=(root,),
            root_names=(),
        )
        forecast = simulate(graph, call)
        if forecast.ok is not False or forecast.reason != "inplace" or forecast.fails_at is None:
            continue
        index = forecast.fails_at.index
        tensor, writes = culprit(record, graph, index, call.n)
        same = (path.split("[", 1)[0], tensor, writes[-1].place) if writes and "[" in path else None
        if same in told:
            continue
        told |= {same} if same is not None else set()
        failing = replace(call, graph=graph, failed_uid=graph.uid[index], failed_node=graph.name_of(index))
        if writes and not any(map(_is_step, writes)):
            yield _warning(record, path, index, tensor, writes, failing)
        elif writes and any(_waits_for(each, writes[-1], graph.uid[index]) for each in retaining):
            yield replace(_warning(record, path, index, tensor, writes, failing), severity="info")


def _waits_for(call: BackwardCall, write: Write, uid: int) -> bool:
    """Whether a call ran a node and kept it for another one before something was written."""
    return call.n < write.after_calls and uid in call.executed


def _is_step(write: Write) -> bool:
    """Whether a write is a step of an optimizer or by hand: ``p -= 0.1 * p.grad``."""
    return write.optimizer or ".grad" in write.by


def _warning(
    record: Record, root: str, index: int, tensor: str | None, writes: tuple[Write, ...], call: BackwardCall
) -> Finding:
    graph, write = record.snapshot, writes[-1]
    shown, name = f"`{tensor}`" if tensor else "a saved tensor", graph.name_of(index)
    by = f"{short(write.by)} ({when(record, write.place)}) changed {shown}"
    if write.inside is not None:
        by += f" in {named(write.inside)},"
    return Finding(
        kind="inplace",
        severity="warning",
        text=f"`{root}.backward()` would raise at {name}. The reason: {by} after it was saved.",
        headline=f"`{root}.backward()` would raise: {shown} was modified in place.",
        node=name,
        node_uid=graph.uid[index],
        made_at=graph.place_of(index),
        tensor=tensor,
        modified_at=write.place,
        modified_by=write.by,
        path=(root, *(one for one in failed_node.path(graph, call) if one != root)),
        uids=(graph.uid[index],),
        fixes=for_inplace(record, call, graph, writes, None, tensor),
    )
