"""A copy by ``copy.deepcopy`` of what holds a computed tensor: also by ``AveragedModel``, or another library's code."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.paths import is_code
from graphwidget.diagnosis.wording import listed, names, short
from graphwidget.model import CopiedTensor, Finding, Fix

__all__ = ["of_copy"]

_MOST_GIVEN = 4  # tensors whose values a copy is given one by one
_MOST_CUT = 3  # tensors that are cut off one by one
_MOST_NAMED = 4
_STORED = re.compile(r"\w+|\w[\w.\[\]'\"]*\.\w+")  # a path that can be assigned: a variable, or an attribute


def of_copy(failure: Failure) -> Finding:
    """``copy.deepcopy(net)`` where `net` holds a computed tensor."""
    calls = [n for n in ast.walk(failure.statement) if isinstance(n, ast.Call)] if failure.statement is not None else []
    copies = [call for call in calls if ast.unparse(call.func).endswith("deepcopy") and call.args]
    whole = ast.unparse(copies[0].args[0]) if len(copies) == 1 else None
    itself = failure.value(whole)
    if itself is not None and itself.kind == "tensor" and itself.leaf is False and whole is not None:
        return _tensor_copied(failure, copies[0], whole)
    measured = _measured(failure, whole)
    computed = [one for one in measured if one.hook]
    if computed and len(computed) == len(measured):
        return _computed_by_hooks(failure, computed)
    nodes = {one.path: _node(failure, one) for one in measured}
    if not nodes and whole is not None:
        paths = [owner.path for owner in failure.record.snapshot.owners if _is_in(owner.path, whole)]
        known = [path for path in paths if failure.computed(path) is not None]
        known = known or [path for path in failure.run.scene.computed if _is_in(path, whole)]
        nodes = {path: failure.computed(path) for path in known}
    found = tuple(nodes)
    shown = _shown(found, [failure.named(*one) for one in nodes.items()]) or (
        f"A tensor in `{whole}`" if whole else "A tensor in it"
    )
    made = failure.made(nodes[found[0]]) if len(found) == 1 else ""
    simple = bool(failure.line) and 0 < len(found) <= _MOST_CUT and all(map(_STORED.fullmatch, found))
    is_module = itself is not None and itself.kind == "module"
    values = _values_copied(failure, copies, found)
    if values is not None and (failure.before_a_backward or not is_module):
        simple = False  # what is cut off before the copy gets no gradient any more
    cut = [f"{path} = {path}.detach()" for path in found]
    fix = (
        failure.fix(
            "detach",
            f"Cut {'them' if len(found) > 1 else 'it'} off first: " + ", ".join(f"`{one}`" for one in cut) + ".",
            failure.preceded_by([line for path, one in zip(found, cut) for line in _if_there(failure, path, one)]),
            verified=not failure.before_a_backward,
            price="No gradient flows back through it from then on.",
        )
        if simple
        else values
    )
    weights = failure.fix(
        "copy_weights",
        "Copy only the weights: make a new object and `load_state_dict` the old one's `state_dict()`. Or let go of "
        "what was computed before the copy, if nothing reads it any more.",
    )
    by = "" if copies else f" {short(failure.text)} makes such a copy."
    return failure.finding(
        f"{shown} {'have' if len(found) > 1 else 'has'} a graph, and graphs are not copied.",
        f"{shown} {'were' if len(found) > 1 else 'was'} computed{made}. Only leaves can be copied by `deepcopy`.{by}",
        *filter(None, (fix, weights if fix is None or is_module else None)),
        tensor=found[0] if len(found) == 1 else None,
        nodes=list(nodes.values()),
        names=found,
    )


def _if_there(failure: Failure, path: str, line: str) -> list[str]:
    """A line that detaches an attribute, where it is there: one that begins as None may be copied before."""
    texts = (run.source for run in failure.record.runs.values())
    made = (one for text in texts for one, _ in syntax.assigned_as(text, syntax.last_name(path)))
    begins = any(ast.unparse(syntax.given(one)) == "None" for one in made)
    return [f"if {path} is not None:", f"    {line}"] if begins else [line]


def _measured(failure: Failure, whole: str | None) -> list[CopiedTensor]:
    """The tensors that were measured at the error, by names that the line can use; none: their owner has no name."""
    found = []
    for one in failure.run.scene.copied:
        nameless = not re.match(r"\w", one.path)
        if nameless and whole is None:
            return []
        path = f"{whole}{one.path}" if nameless else one.path
        found.append(CopiedTensor(path, one.number, one.hook, one.sources, one.remover))
    return found


def _node(failure: Failure, one: CopiedTensor) -> int | None:
    numbers = failure.record.snapshot.seq
    return numbers.index(one.number) if one.number >= 0 and one.number in numbers else failure.computed(one.path)


def _shown(paths: tuple[str, ...], named: Sequence[str] = ()) -> str:
    return listed(named or [f"`{one}`" for one in paths], _MOST_NAMED)


# ------------------------------------------------------------------ what a forward computes again


def _computed_by_hooks(failure: Failure, found: list[CopiedTensor]) -> Finding:
    """A pruned module, or one with `weight_norm`: a forward pre-hook computes its weight from parameters, each time.

    So nothing is lost where the value of the last forward is cut off.
    """
    first, several = found[0], len(found) > 1
    paths = tuple(one.path for one in found)
    owner, _, name = first.path.rpartition(".")
    gone = f"{names(first.sources)} {'are' if len(first.sources) > 1 else 'is'} gone then"
    made = failure.made(_node(failure, first))
    by = f"`{first.hook}`, a forward pre-hook of `{owner}`," if owner else f"`{first.hook}`, a forward pre-hook,"
    last = f" last{made}" if made else ""
    it, is_ = ("them", "they are") if several else ("it", "it is")
    lines = _cut_off(failure, found)
    fixes = [
        failure.fix(
            "detach",
            f"Cut {it} off before the copy: "
            + ("; ".join(f"`{one}`" for one in lines[:1]) or "`.detach()`")
            + (" and so on." if len(lines) > 1 else "."),
            failure.preceded_by(lines) if lines else (),
            price=f"None for the training: {is_} computed anew at the next forward.",
        ),
        failure.fix(
            "forward_under_no_grad",
            f"Or run the module once under `with torch.no_grad():` before the copy: the hook then computes {it} "
            "without a graph. Batch norms in training mode count that pass, too.",
        ),
    ]
    if first.remover:
        fixes.append(
            failure.fix(
                "remove_reparametrization",
                f"Or take the hook away, if {is_} no more to be computed: "
                f'`{first.remover}({owner or "module"}, "{name}")` makes a parameter of it again.',
                price=f"{gone}: see that the optimizer has `{name}`.",
            )
        )
    others = ["", " The other is of the same kind.", " The others are of the same kind."][min(len(found) - 1, 2)]
    copying = "" if "deepcopy" in failure.text else f" {short(failure.text)} makes such a copy."
    return failure.finding(
        f"{_shown(paths)} {'have' if several else 'has'} a graph, and graphs are not copied.",
        f"{by} computes `{first.path}` from {names(first.sources)} at each forward,{last or ' with a graph'}"
        f"{', with a graph' if last else ''}.{others} Only leaves can be copied "
        f"by `deepcopy`.{copying}",
        *fixes,
        tensor=first.path,
        nodes=[_node(failure, one) for one in found],
        names=paths,
    )


def _cut_off(failure: Failure, found: list[CopiedTensor]) -> list[str]:
    """The lines that cut the tensors off; none where they have no name that can be assigned."""
    paths = [one.path for one in found]
    if not all(map(_STORED.fullmatch, paths)) or not failure.line:
        return []
    if len(found) <= _MOST_CUT:
        return [f"{path} = {path}.detach()" for path in paths]
    names_of = {path.rpartition(".")[2] for path in paths}
    sources = {one.sources for one in found}
    root = re.match(r"\w+", paths[0])
    if len(names_of) > 1 or len(sources) > 1 or root is None or not all(_is_in(path, root[0]) for path in paths):
        return [f"{path} = {path}.detach()" for path in paths]
    value = failure.value(root[0])
    if value is None or value.kind != "module":
        return [f"{path} = {path}.detach()" for path in paths]
    name, source = names_of.pop(), sources.pop()[0]
    return [
        f"for part in {root[0]}.modules():",
        f'    if hasattr(part, "{source}"):',
        f"        part.{name} = part.{name}.detach()",
    ]


# ------------------------------------------------------------------ copies of values


def _values_copied(failure: Failure, copies: list[ast.Call], found: tuple[str, ...]) -> Fix | None:
    """``deepcopy(x, {id(x.h): x.h.detach().clone()})``: the copy gets values, and `x` stays as it is.

    Of a list whose elements were computed, it gets those of all.
    """
    if len(copies) != 1 or len(copies[0].args) != 1 or copies[0].keywords or not all(map(is_code, found)):
        return None
    lists = [re.sub(r"\[\d+\]$", "", path) for path in found]
    given = [*dict.fromkeys(f"*{one}" if lists.count(one) > 1 else path for one, path in zip(lists, found))]
    if not 0 < len(given) <= _MOST_GIVEN:
        return None
    memo = f"id(one): one.detach().clone() for one in ({', '.join(given)}{',' if len(given) == 1 else ''})"
    if given == [*found[:1]]:
        memo = f"id({found[0]}): {found[0]}.detach().clone()"
    new = f"{ast.unparse(copies[0])[:-1]}, {{{memo}}})"
    return failure.fix(
        "detach",
        f"Give the copy {'their' if len(found) > 1 else 'its'} values without a graph: {short(new, 120)}.",
        text_edit.replace_node(failure.place.cell, failure.cell, copies[0], new),
        price="No gradient flows back through the copy.",
    )


def _tensor_copied(failure: Failure, call: ast.Call, name: str) -> Finding:
    """``copy.deepcopy(out)`` of a computed tensor."""
    made = failure.made(failure.computed(name))
    new = f"{name}.detach().clone()"
    return failure.finding(
        f"`{name}` has a graph, and graphs are not copied.",
        f"`{name}` was computed{made}. Only leaves can be copied by `deepcopy`.",
        failure.fix(
            "detach",
            f"Copy its values: `{new}`.",
            text_edit.replace_node(failure.place.cell, failure.cell, call, new),
            verified=not failure.before_a_backward,
            price="No gradient flows back through the copy.",
        ),
        tensor=name,
    )


def _is_in(path: str, whole: str) -> bool:
    return path == whole or path.startswith((f"{whole}.", f"{whole}["))
