"""Modules and tensors that a line was to freeze by an attribute that torch does not read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, names, place_of, short, spoken, where
from graphwidget.model import CellRun, FalseFlag, Finding, Fix, Record

__all__ = ["find"]

MOST_NAMED = 4
_FLAG = "requires_grad"


class _Setting(NamedTuple):
    """A statement that sets an attribute: ``self.net.head.requires_grad = False``, or by `setattr`."""

    run: CellRun
    statement: ast.stmt
    receiver: ast.expr
    value: ast.expr


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for each attribute and kind of what has it; none where the program reads the attribute."""
    runs = Cells.of(record).latest
    by_lines: dict[tuple[object, ...], tuple[list[_Setting], list[FalseFlag]]] = {}
    for flag in record.false_flags:
        settings = _settings_of(runs, flag)
        if settings and not _is_read(runs, flag, settings):
            lines = tuple((one.run.run, one.statement.lineno) for one in settings)
            by_lines.setdefault((flag.name, bool(flag.class_name), *lines), (settings, []))[1].append(flag)
    for settings, flags in by_lines.values():
        yield _of(settings, flags)


def _of(settings: list[_Setting], flags: list[FalseFlag]) -> Finding:
    setting, flag = next((one for one in settings if _says_no(one.value)), settings[0]), flags[0]
    place = place_of(setting.run, setting.statement.lineno)
    paths = tuple(dict.fromkeys(spoken(one.path) for one in flags))
    changed = tuple(dict.fromkeys(spoken(path) for one in flags for path in one.changed)) or paths
    shown = paths if flag.class_name else changed
    step, steps = where(flag.place), max(one.steps for one in flags)
    if flag.class_name:
        what = f"a plain attribute of {'a module' if len(shown) == 1 else 'modules'}, which torch does not read"
        told, new = "go on training", f"{ast.unparse(setting.receiver)}.requires_grad_({ast.unparse(setting.value)})"
        headline = f"{names(shown, MOST_NAMED)} {'is' if len(shown) == 1 else 'are'} not frozen: the parameters {told}."
    else:
        what = f"an attribute that torch does not read: a tensor's own is `{_FLAG}`"
        new = f"{ast.unparse(setting.receiver)}.{_FLAG} = {ast.unparse(setting.value)}"
        headline = f"{names(shown, MOST_NAMED)} {'is' if len(shown) == 1 else 'are'} not frozen, and trained."
    still = "still requires grad" if len(changed) == 1 else "still require grad"
    return Finding(
        "silent",
        "warning",
        f"{short(ast.unparse(setting.statement))} ({where(place)}) sets {what}. {names(changed, MOST_NAMED)} {still}, "
        f"and an optimizer changed {'it' if len(changed) == 1 else 'them'} in {steps} "
        f"{'step' if steps == 1 else 'steps'}{f' ({step})' if step else ''}.",
        headline,
        tensor=changed[0],
        made_at=place,
        cause=place,
        names=shown,
        fixes=(
            Fix(
                "freeze",
                f"Write {short(new)} ({where(place)}).",
                False,
                at(place),
                starves=tuple(path for one in flags for path in one.changed),
                edits=_edits(settings, flag),
            ),
        ),
    )


def _edits(settings: Sequence[_Setting], flag: FalseFlag) -> text_edit.Edits:
    """Set the flag itself, wherever the attribute is set."""
    edits: text_edit.Edits = ()
    for run, statement, receiver, value in settings:
        if list(syntax.targets(statement))[1:]:
            return ()  # ``a.requires_grad = b.requires_grad = False``
        owner, given = ast.unparse(receiver), ast.unparse(value)
        new = f"{owner}.requires_grad_({given})" if flag.class_name else f"{owner}.{_FLAG} = {given}"
        edits += text_edit.replace_node(run.cell, run.source, statement, new)
    return edits


def _settings_of(runs: Sequence[CellRun], flag: FalseFlag) -> list[_Setting]:
    """The statements that set the attribute of a module or tensor; empty: it is not clear which."""
    every = [one for run in runs for one in _settings(run, flag.name)]
    if flag.name != _FLAG and len(every) == 1:
        return every
    if flag.class_name:  # a parameter has a flag of that name
        every = [one for one in every if "parameters(" not in " ".join(map(ast.unparse, _bound(runs, one)))]
    last = _last(flag.path)
    own = [
        one
        for one in every
        if _last(ast.unparse(one.receiver)) == last or _is_within(one.run, one.statement, one.receiver, flag.class_name)
    ]
    parts = set(re.findall(r"[A-Za-z_]\w*", spoken(flag.path))) - {"self"}
    return own or [one for one in every if any(parts & syntax.words_in(node) for node in _bound(runs, one))]


def _bound(runs: Sequence[CellRun], setting: _Setting) -> list[ast.expr]:
    """What a variable whose attribute is set stands for: what a loop runs over, what it was given, an argument."""
    if not isinstance(setting.receiver, ast.Name):
        return []
    name, text, line = setting.receiver.id, setting.run.source, setting.statement.lineno
    loops = [one for one in syntax.loops_around(text, line) if isinstance(one, ast.For)]
    found = [one.iter for one in loops if name in syntax.names_in(one.target)]
    if found:
        return found
    inside = syntax.function_at(text, line)
    places = [one.arg for one in inside[1].args.args if one.arg != "self"] if inside is not None else []
    if inside is not None and name in places:
        calls = [call for run in runs for call in syntax.calls_by_name(run.source).get(inside[1].name, [])]
        at = places.index(name)
        return [call.args[at] for call in calls if len(call.args) > at]
    values = (syntax.given(one) for one in syntax.assignments(text, name))
    return [one for one in values if isinstance(one, ast.expr)]


def _settings(run: CellRun, name: str) -> Iterator[_Setting]:
    for node in syntax.nodes_of(run.source):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                kept = isinstance(node.value, ast.Name) and node.value.id == name  # an argument: a setting of its own
                if isinstance(target, ast.Attribute) and target.attr == name and not kept:
                    yield _Setting(run, node, target.value, node.value)
        elif isinstance(node, ast.Expr) and isinstance(call := node.value, ast.Call) and len(call.args) == 3:
            owner, attribute, value = call.args
            by_name = isinstance(attribute, ast.Constant) and attribute.value == name
            if by_name and ast.unparse(call.func) == "setattr":
                yield _Setting(run, node, owner, value)


def _is_within(run: CellRun, node: ast.expr | ast.stmt, receiver: ast.expr, class_name: str) -> bool:
    """Whether it is about ``self`` in the class of a module."""
    inside = syntax.function_at(run.source, node.lineno)
    own = isinstance(receiver, ast.Name) and receiver.id == "self"
    return own and inside is not None and inside[0] is not None and inside[0].name == class_name


def _is_read(runs: Sequence[CellRun], flag: FalseFlag, settings: Sequence[_Setting]) -> bool:
    """Whether the program reads the attribute: it is a setting of its own."""
    owners = {_last(ast.unparse(one.receiver)) for one in settings} | {_last(flag.path)}
    for run, node in ((one, node) for one in runs for node in syntax.nodes_of(one.source)):
        if isinstance(node, ast.Attribute) and node.attr == flag.name and isinstance(node.ctx, ast.Load):
            if _last(ast.unparse(node.value)) in owners or _is_within(run, node, node.value, flag.class_name):
                return True
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr") and len(node.args) > 1:
            if isinstance(node.args[1], ast.Constant) and node.args[1].value == flag.name:
                return True
    return False


def _last(path: str) -> str:
    """``head`` of ``net.heads.head[0]``."""
    return re.sub(r"\[[^]]*\]", "", spoken(path)).rpartition(".")[2]


def _says_no(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False
