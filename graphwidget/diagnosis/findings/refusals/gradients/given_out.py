"""Operations that are to write their result into a given tensor: ``torch.stack(rows, out=table)`` records no graph.

Without ``out=`` the operation returns a new tensor. The program has to find that where it looked for the given one:
what is written depends on who reads the tensor afterwards, and on how long it is kept.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.checks.edits import without_argument
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.wording import short
from graphwidget.model import Finding, Fix, TextEdit

__all__ = ["of_given_out"]

_ONLY_VALUES = ("data", "grad")


def of_given_out(failure: Failure, operation: str) -> Finding:
    """A call with ``out=``, of which a tensor requires grad."""
    call = _call(failure, operation)
    target = _out(call) if call is not None else None
    given = f" {failure.given}" if failure.given else ""
    headline = f"`{operation}` cannot write into `out=` here."
    if target is not None and _is_updated(failure, target):
        text = f"{short(failure.text)} changes the values of `{ast.unparse(target)}` while a graph is recorded."
        fix = failure.fix(
            "under_no_grad",
            "Write to it under `with torch.no_grad():`. Then nothing is recorded.",
            failure.under_no_grad(failure.text),
        )
        return failure.finding(headline, f"{text} PyTorch records no operation that has `out=`.{given}", fix)
    text = (
        f"{short(failure.text)} writes into a given tensor, and PyTorch records no operation that does. One of its "
        f"arguments requires grad.{given}"
    )
    return failure.finding(headline, text, _fix(failure, call, target))


def _call(failure: Failure, operation: str) -> ast.Call | None:
    """The call that was refused: the only one of the line with `out`, or the only one of that operation."""
    nodes = ast.walk(failure.statement) if failure.statement is not None else ()
    calls = [one for one in nodes if isinstance(one, ast.Call) and _out(one) is not None]
    named = [one for one in calls if syntax.last_name(ast.unparse(one.func)) == operation]
    found = named or calls
    return found[0] if len(found) == 1 else None


def _out(call: ast.Call) -> ast.expr | None:
    return next((one.value for one in call.keywords if one.arg == "out"), None)


def _is_updated(failure: Failure, target: ast.expr) -> bool:
    """Whether the tensor is a leaf that trains, or only its values are meant: ``out=w``, ``out=w.data``."""
    value = failure.value(ast.unparse(target))
    leaf = value is not None and bool(value.leaf) and bool(value.requires_grad)
    return leaf or (isinstance(target, ast.Attribute) and target.attr in _ONLY_VALUES)


def _fix(failure: Failure, call: ast.Call | None, target: ast.expr | None) -> Fix:
    edits: Edits = ()
    told = "the operation then returns a new tensor, which has a graph."
    if call is not None and target is not None and failure.statement is not None:
        there = _Given(failure, failure.statement, call, target)
        edits = there.edits()
        if isinstance(target, ast.Subscript) and not there.new_name:
            whole = f"`{there.whole}`"
            told += f" A write into a part of {whole} is recorded, if {whole} is made anew for each backward call."
    return failure.fix("out_of_place", f"Leave out `out=`: {told}", edits)


class _Given:
    """A tensor that a call is to write into, and what reads it. `whole`: what it is, or what it is a part of."""

    def __init__(self, failure: Failure, statement: ast.stmt, call: ast.Call, target: ast.expr) -> None:
        self._failure, self._cell, self._text = failure, failure.place.cell, failure.cell
        self._cells = failure.cells
        self._statement, self._call, self._target = statement, call, target
        found = syntax.function_at(self._text, statement.lineno)
        self._class = found[0] if found is not None else None
        self._function = found[1] if found is not None else None
        tree = syntax.parse(self._text)
        self._body = self._function.body if self._function is not None else tree.body if tree is not None else []
        base = target
        while isinstance(base, ast.Subscript):
            base = base.value
        self._base, self.whole = base, ast.unparse(base)
        self._made = [one for one in syntax.own_statements(self._body) if self.whole in syntax.targets(one)]
        self._inside = [read for one in self._body for read in _reading(one, self.whole)]
        self._outside = list(self._read_outside())
        self.new_name = self._name_instead() if isinstance(target, ast.Subscript) and self._is_kept else ""

    def edits(self) -> Edits:
        """The call without ``out=``, and its result where the program looks for it."""
        if not isinstance(self._base, (ast.Name, ast.Attribute, ast.Tuple, ast.List)):
            return ()
        cut = without_argument(self._cell, self._text, self._call, "out")
        written = ast.unparse(self._target)
        if isinstance(self._target, (ast.Tuple, ast.List)):
            each = [_Given(self._failure, self._statement, self._call, one) for one in self._target.elts]
            plain = all(one.is_whole and one.may_be_bound for one in each)
            return self._assigned(", ".join(map(ast.unparse, self._target.elts)), cut) if plain else ()
        if not self._inside and not self._outside and not self._is_argument:
            return cut
        if self.is_whole:
            return self._assigned(written, cut) if self.may_be_bound else self._copied(cut)
        if not self._is_kept:
            return self._assigned(written, cut)
        if self.new_name:
            cell, text, new = self._cell, self._text, self.new_name
            reads = [edit for one in self._inside for edit in text_edit.replace_node(cell, text, one, new)]
            return (*self._assigned(new, cut), *reads)
        anew = self._made_anew()
        return (*anew, *self._assigned(written, cut)) if anew else ()

    # ------------------------------------------------------------------ what is written

    def _assigned(self, target: str, cut: Edits) -> Edits:
        """``table = `` before the call, where the line does nothing else with the result."""
        if getattr(self._statement, "value", None) is not self._call or isinstance(self._statement, ast.Return):
            return ()
        start = text_edit.span(self._text, self._call)[0]
        return (TextEdit(start, start, f"{target} = ", self._cell), *cut)

    def _copied(self, cut: Edits) -> Edits:
        """``table.copy_(…)``: others have the tensor itself."""
        if not isinstance(self._statement, ast.Expr) or self._statement.value is not self._call:
            return ()
        return (*text_edit.wrapped(self._cell, self._text, self._call, f"{self.whole}.copy_("), *cut)

    def _name_instead(self) -> str:
        """A name for the result, if all that reads the tensor reads that part, behind the line; else empty."""
        same = ast.unparse(self._target)
        behind = syntax.behind(self._text, self._statement)
        later = {id(node) for one in behind for node in ast.walk(one)}
        if self._outside or any(ast.unparse(one) != same or id(one) not in later for one in self._inside):
            return ""
        if any(syntax.names_in(self._target) & syntax.changed(one) for one in behind):
            return ""
        name = f"new_{syntax.last_name(self.whole)}"
        known = any(name in text for text in self._cells.texts.values())
        return name if not known else ""

    def _made_anew(self) -> Edits:
        """A copy of the tensor before the loop that fills it: what is written there has a graph of its own."""
        loops = [one for one in self._loops if not _runs_backward(one)]
        filled = [one for one in loops if isinstance(one, ast.For) and self._index & syntax.names_in(one.target)]
        if not filled or not (isinstance(self._base, ast.Attribute) or self._function is None):
            return ()
        new = f"{self.whole} = {self.whole}.detach().clone()"
        return text_edit.insert_before(self._cell, self._text, loops[0], [new])

    @property
    def _index(self) -> set[str]:
        return syntax.names_in(self._target) - syntax.names_in(self._base)

    # ------------------------------------------------------------------ who has the tensor

    @property
    def _loops(self) -> list[ast.For | ast.While]:
        """The loops of the function around the line."""
        first = self._function.lineno if self._function is not None else 0
        return [one for one in syntax.loops_around(self._text, self._statement.lineno) if one.lineno > first]

    @property
    def _is_argument(self) -> bool:
        """Whether the caller has the tensor."""
        arguments = ast.walk(self._function.args) if self._function is not None else ()
        return self.whole in {one.arg for one in arguments if isinstance(one, ast.arg)}

    @property
    def is_whole(self) -> bool:
        """Whether the call writes all of a variable or an attribute."""
        return self._target is self._base and isinstance(self._base, (ast.Name, ast.Attribute))

    @property
    def may_be_bound(self) -> bool:
        """Whether all that reads the variable finds it, if the line binds it to another tensor."""
        if self._is_argument:
            return False
        if isinstance(self._base, ast.Attribute) or self._function is None or self._made:
            return True
        return not self._outside and all(one.lineno > self._statement.lineno for one in self._inside)

    @property
    def _is_kept(self) -> bool:
        """Whether the tensor may outlive a backward call: it is not made anew for each. An argument: a trial says."""
        if self._is_argument:
            return False
        passes = [one for one in self._loops if _runs_backward(one)]
        made = self._made[-1].lineno if self._made else 0
        return not made or any(not one.lineno <= made <= (one.end_lineno or 0) for one in passes)

    def _read_outside(self) -> Iterator[ast.AST]:
        """What other functions or cells read of it."""
        if isinstance(self._base, ast.Name) and self._function is not None and (self._made or self._is_argument):
            return
        inside = {id(node) for one in self._body for node in ast.walk(one)}
        for cell, text in self._cells.texts.items():
            if isinstance(self._base, ast.Name) and cell != self._cell and cell in self._cells.files:
                continue
            tree = syntax.parse(text) or ast.Module([], [])
            apart = {id(node) for one in self._strangers(tree) for node in ast.walk(one)} | inside
            yield from (one for one in _naming(tree, self._base) if id(one) not in apart)

    def _strangers(self, tree: ast.Module) -> list[ast.ClassDef]:
        """The other classes, whose `self` is another object."""
        if not self.whole.startswith("self."):
            return []
        own = self._class.name if self._class is not None else ""
        return [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef) and one.name != own]


def _runs_backward(loop: ast.stmt) -> bool:
    return any(syntax.last_name(one) in ("backward", "grad") for one in syntax.calls_in(loop))


def _reading(node: ast.AST, whole: str) -> Iterator[ast.expr]:
    """The longest expressions in a node that are a tensor, or a part of it, and that are read."""
    work: list[ast.AST] = [node]
    while work:
        one = work.pop(0)
        base = one
        while isinstance(base, ast.Subscript):
            base = base.value
        if isinstance(one, ast.expr) and isinstance(base, (ast.Name, ast.Attribute)) and ast.unparse(base) == whole:
            if isinstance(getattr(one, "ctx", None), ast.Load):
                yield one
        elif not (isinstance(one, ast.keyword) and one.arg == "out"):  # that is written, not read
            work += ast.iter_child_nodes(one)


def _naming(tree: ast.AST, base: ast.expr) -> Iterator[ast.AST]:
    """What reads a variable of that name, or an attribute of that name of any object; a method is called."""
    nodes = list(ast.walk(tree))
    outs = (node.value for node in nodes if isinstance(node, ast.keyword) and node.arg == "out")
    apart = {id(part) for one in outs for part in ast.walk(one)}
    apart |= {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for one in nodes:
        if id(one) in apart or not isinstance(getattr(one, "ctx", None), ast.Load):
            continue
        if isinstance(base, ast.Name) and isinstance(one, ast.Name) and one.id == base.id:
            yield one
        elif isinstance(base, ast.Attribute) and isinstance(one, ast.Attribute) and one.attr == base.attr:
            yield one
