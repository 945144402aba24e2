"""A cell's error, prepared for findings: the line that raised, its text, and the measured values of its names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import at, described, lasting_name, where
from graphwidget.model import CellRun, Finding, Fix, Place, Record, SlotState, TensorRef, Value

__all__ = ["Failure"]


@dataclass(frozen=True)
class Failure:
    """A cell's error, and the line that raised it."""

    record: Record
    run: CellRun
    place: Place

    @cached_property
    def text(self) -> str:
        """Return the statement as one line."""
        found = self.statement
        whole = found is not None and found.lineno != found.end_lineno
        return ast.unparse(found) if whole and found is not None else self.place.source

    @cached_property
    def cell(self) -> str:
        """Return the text of the cell with the line: the cell that defines the function, if a function raised."""
        return self.cells.text(self.place.cell)

    @cached_property
    def cells(self) -> Cells:
        return Cells.of(self.record)

    @cached_property
    def statement(self) -> ast.stmt | None:
        """Return the simple statement at the line."""
        found = source.statements_at(self.cell, self.place.line or 0)
        return found[-1] if found and not hasattr(found[-1], "body") else None

    @property
    def line(self) -> str:
        """Return the text of the line if it is one whole statement; else an empty text."""
        one = self.statement is not None and self.statement.lineno == self.statement.end_lineno
        return self.place.source if one and source.statement_of(self.place.source) is not None else ""

    def node(self, name: str) -> int | None:
        """Return the node that computed a variable, now or at the error; for a leaf, its AccumulateGrad."""
        graph, value = self.record.snapshot, self.value(name)
        measured = self.node_of(value) if value is not None else None
        if measured is not None:
            return measured
        return next((owner.node for owner in graph.owners if self._means(owner.path, name)), None)

    def node_of(self, value: Value) -> int | None:
        """Return the node that computed a measured tensor, as far as it is still there."""
        graph = self.record.snapshot
        return graph.seq.index(value.number) if value.number >= 0 and value.number in graph.seq else None

    def _means(self, path: str, name: str) -> bool:
        """Whether `name` in the line refers to an owner's path, and not to a local variable that hides it."""
        return path.endswith(f": {name}") or (path == name and not self.run.scene.is_local(name))

    def value(self, name: str | None) -> Value | None:
        """Return the measured value of a name when the line raised; None if it was not measured."""
        return self.run.scene.value(name) if name else None

    def may_require_grad(self, expression: ast.expr) -> bool:
        """Whether an expression may require grad: False only for a name that was measured not to."""
        value = self.value(ast.unparse(expression))
        return value is None or value.requires_grad is not False

    @property
    def before_a_backward(self) -> bool:
        """Whether a backward may run over the line's result: one is called after it, or in a loop around it."""
        places = [sight.place for sight in self.run.scene.sights]
        called = [name.rsplit(".", 1)[-1] for at in places for s in self._after(at) for name in source.calls_in(s)]
        return "backward" in called or "grad" in called

    @property
    def after(self) -> list[ast.stmt]:
        """Return the statements of the line's function or cell that run after it; in a loop also its own."""
        return list(self._after(self.place))

    def _after(self, place: Place) -> Iterator[ast.stmt]:
        cell, line = self.cells.text(place.cell), place.line or 0
        inside = source.function_at(cell, line)
        body = inside[1].body if inside is not None else getattr(source.parse(cell), "body", [])
        loops = [node for loop in source.loops_around(cell, line) for node in ast.walk(loop)]
        yield from (one for one in source.own_statements(body) if one.lineno >= line or one in loops)

    @property
    def given(self) -> str:
        """Return the tensors that the line reads, with shapes, as a sentence; empty where none was measured."""
        read = sorted(source.paths_read(self.statement)) if self.statement is not None else ()
        return described({name: value for name in read if (value := self.value(name)) is not None})

    def leaves(self, name: str) -> list[str]:
        """Return the names of the leaves that a variable was computed from."""
        graph, start = self.record.snapshot, self.node(name)
        stack, seen, found = [start] if start is not None else [], set[int](), list[str]()
        while stack:
            index = stack.pop()
            if index in seen:
                continue
            seen.add(index)
            leaf = graph.leaves.get(index)
            if leaf is not None and leaf.paths:
                found.append(lasting_name(self.record, leaf.paths))
            stack.extend(graph.next(index))
        return sorted(found)

    def tensor(self, name: str | None) -> TensorRef | None:
        """Return a variable's tensor; without a shape, if another tensor was computed from it."""
        graph = self.record.snapshot
        if name is None:
            return None
        known = [TensorRef(owner.node, owner.output_nr) for owner in graph.owners if self._means(owner.path, name)]
        roots = (ref for ref in graph.roots if any(self._means(path, name) for path in ref.paths))
        return next(roots, next(iter(known), None))

    def shape(self, name: str | None) -> tuple[int, ...] | None:
        """Return the shape of a variable's tensor when the line raised; None if unknown."""
        value, ref = self.value(name), self.tensor(name)
        if value is not None:
            return value.shape if value.kind == "tensor" else None
        return ref.shape if ref is not None and ref.numel != 1 else None

    def computed(self, name: str) -> int | None:
        """Return the variable's node if it is no leaf."""
        node, value = self.node(name), self.value(name)
        if value is not None and (value.leaf or value.kind != "tensor"):
            return None  # another variable of the same name
        return None if node is None or self.record.snapshot.node(node).leaf is not None else node

    def is_computed(self, name: str) -> bool:
        """Whether a variable surely is a computed tensor: it was measured, or its node is known."""
        value = self.value(name)
        measured = value is not None and value.kind == "tensor" and value.leaf is False
        return measured or self.computed(name) is not None

    def plain_name(self, path: str, node: int | None) -> str | None:
        """The variable that holds a tensor which a line reads as an element: `query` of ``params[7]``; None: none does.

        One that a loop assigns stands for another tensor in each pass; one that the program does not is another's, and
        so is one of a library's function that the error has passed.
        """
        owners = [one for one in self.record.snapshot.owners if node is not None and one.node == node]
        owned = (local(one.path) for one in owners if one.kind != "traceback" or self.value(local(one.path)))
        plain = (name for name in owned if name.isidentifier() and name != path and self._is_assigned_once(name))
        return next(plain, None)

    def named(self, path: str, node: int | None) -> str:
        """A tensor as a person knows it: by its variable, with the element that the line reads behind it."""
        plain = self.plain_name(path, node)
        return f"`{plain}` (`{path}`)" if plain else f"`{path}`"

    def _is_assigned_once(self, name: str) -> bool:
        """Whether the program assigns a variable, and no loop does."""
        texts = [run.source for run in self.record.runs.values()]
        made = [(text, one) for text in texts for one in source.assignments(text, name)]
        in_loops = (name in source.loop_names(text) or source.loop_at(text, one.lineno) for text, one in made)
        return bool(made) and not any(in_loops)

    def is_saved(self, name: str) -> bool:
        """Whether a graph still needs the values of a tensor: then no fix may write to it."""
        graph = self.record.snapshot
        keys = {at for at, owners in graph.storages.owners.items() if name in owners}
        held = (at for slot, at in enumerate(graph.slot_storage) if graph.slot_state[slot] == SlotState.HELD)
        return not keys.isdisjoint(held)

    def made(self, node: int | None) -> str:
        """Return the place of a node as the end of a sentence; empty if unknown."""
        place = where(self.record.snapshot.place_of(node)) if node is not None else ""
        return f" in {place}" if place else ""

    def finding(
        self,
        headline: str,
        text: str,
        *fixes: Fix,
        kind: Literal["no_grad", "refused"] = "refused",
        tensor: str | None = None,
        nodes: Iterable[int | None] = (),
        names: Iterable[str] = (),
        cause: Place | None = None,
    ) -> Finding:
        """Return a finding. `nodes`: indices of the nodes to show; by default the node of `tensor`.

        `names`: the tensors that it is about, where there are several. `cause`: the line to point at, if it is not the
        one that raised.
        """
        found = nodes or ([self.node(tensor)] if tensor is not None else [])
        uids = tuple(self.record.snapshot.uid[node] for node in found if node is not None)
        return Finding(
            kind,
            "error",
            text,
            headline,
            made_at=cause or self.place,
            failed_at=self.place,
            tensor=tensor,
            uids=uids,
            names=tuple(names),
            fixes=fixes,
        )

    def fix(self, id: str, text: str, edits: Edits = (), verified: bool = False, price: str = "") -> Fix:
        return Fix(id, text, verified and bool(edits), at(self.place), price, edits=edits)

    # ---- edits of the statement; none if the line shares its statement with other lines

    def rewritten(self, new: str) -> Edits:
        return text_edit.replace_line(self.place.cell, self.cell, self.place.line or 0, new) if self.line else ()

    def preceded_by(self, new: list[str]) -> Edits:
        return text_edit.insert_before(self.place.cell, self.cell, self.place.line or 0, new) if self.line else ()

    def with_keyword(self, keyword: str) -> Edits:
        if self.statement is None:
            return ()
        return text_edit.with_keyword(self.place.cell, self.cell, self.statement, keyword)

    def under_no_grad(self, new: str) -> Edits:
        """Return edits that change the line to `new` inside a `no_grad` block."""
        line = self.place.line or 0
        block = ["with torch.no_grad():", f"    {new.strip()}"]
        return text_edit.replace_lines(self.place.cell, self.cell, line, line, block) if self.line and new else ()
