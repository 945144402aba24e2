"""The names of nodes and slots in a prediction.

A node has torch's name. Several nodes of one name are numbered from 0 in the order in which they were made: this order
is the program's, the same in every run, with a tracker or without.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from graphwidget.diagnosis.wording import names as quoted
from graphwidget.diagnosis.wording import where
from graphwidget.engine.what_if import reachable
from graphwidget.model import Kind, SlotState, Snapshot
from graphwidget.model.predictions import listed

__all__ = ["Names"]

_MOST_COMPARED = 2_000  # names among which the nearest one is searched
_PREFIX = "torch::autograd::"  # of the engine's own nodes: not shown


class Names:
    """The names of the nodes and slots that a call on the roots of a snapshot can reach."""

    def __init__(self, graph: Snapshot) -> None:
        self.graph = graph
        indices = sorted(reachable(graph, (root.node for root in graph.roots)), key=self._age)
        self._alike: dict[str, list[int]] = {}
        for index in indices:
            self._alike.setdefault(graph.name_of(index).removeprefix(_PREFIX), []).append(index)
        self._name = {
            index: name if len(alike) == 1 else f"{name}[{number}]"
            for name, alike in self._alike.items()
            for number, index in enumerate(alike)
        }
        self._index = {name: index for index, name in self._name.items()}
        self.nodes = tuple(self._name[i] for i in indices if graph.kind[i] != Kind.ACCUMULATE)
        # A slot in which nothing was saved is no candidate, but it may be named: that is a wrong answer.
        self.everything = tuple(slot for index in indices for slot in graph.slots_of(index))
        self.slots = tuple(map(self.of_slot, self._saved(self.everything)))

    def _age(self, index: int) -> tuple[bool, int, int]:
        seq = self.graph.seq[index]
        return seq < 0, seq, index

    def _saved(self, slots: Sequence[int]) -> list[int]:
        return [slot for slot in slots if self.graph.slot_state[slot] != SlotState.UNSAVED]

    def of_node(self, index: int) -> str:
        """``MulBackward0``, or ``MulBackward0[1]``."""
        return self._name.get(index) or self.graph.name_of(index).removeprefix(_PREFIX)

    def of_slot(self, slot: int) -> str:
        """``MulBackward0.self``."""
        return f"{self.of_node(self.graph.node_with(slot))}.{self._slot_name(slot)}"

    def _slot_name(self, slot: int) -> str:
        return self.graph.slot_names[self.graph.slot_name[slot]]

    def node(self, name: str) -> int:
        """Index of a node.

        Raises
        ------
        ValueError
            If there is none of that name, or several. It lists those that there are.
        """
        name = name.strip().removeprefix(_PREFIX)
        index = self._index.get(name)
        if index is not None:
            return index
        alike = self._alike.get(name)
        if alike:
            shown = [f"{self._name[i]}{self._distinction(i)}" for i in alike]
            raise ValueError(
                f"graphwidget.predict(): {len(alike)} nodes are called {name}. Say which one: {listed(shown)}, in the "
                "order in which they were made."
            )
        raise ValueError(_unknown(f"no node {name!r}", name, self.nodes, "The nodes are"))

    def slot(self, name: str) -> int:
        """A slot.

        Raises
        ------
        ValueError
            If there is none of that name, or if several nodes have it. It lists those that there are.
        """
        node_name, _, wanted = name.strip().partition(".")
        if node_name.removeprefix(_PREFIX) not in self._alike and node_name not in self._index:
            why = f"no saved tensor {name!r}" + (": a leaf saves none" if self._is_leaf(node_name) else "")
            raise ValueError(_unknown(why, name, self.slots, "The saved tensors are"))
        index = self.node(node_name)
        slots = self.graph.slots_of(index)
        found = next((slot for slot in slots if self._slot_name(slot) == wanted), None)
        if found is not None:
            return found
        saved = self._saved(slots)
        if saved:
            raise ValueError(
                f"graphwidget.predict(): {name!r} names no saved tensor. Those of {node_name} are: "
                f"{listed([self.of_slot(slot) for slot in saved])}."
            )
        why = "shows no saved tensor" if self._hides(index) else "saves no tensor"
        if self.graph.kind[index] == Kind.ACCUMULATE:
            why += ": it adds to the .grad of a leaf"
        raise ValueError(f"graphwidget.predict(): {node_name} {why}. The saved tensors are: {listed(self.slots)}.")

    def _hides(self, index: int) -> bool:
        facts = self.graph.facts.get(index)
        return self.graph.kind[index] == Kind.COPY_SLICES or (facts is not None and facts.hides_saved)

    def _is_leaf(self, name: str) -> bool:
        return any(name in leaf.paths for leaf in self.graph.leaves.values())

    def _distinction(self, index: int) -> str:
        """What distinguishes a node from others of its name: its variables, else its line."""
        node = self.graph.node(index)
        mark = quoted(node.labels, 1) if node.labels else where(node.place)
        return f" ({mark})" if mark else ""


def _unknown(what: str, name: str, names: Sequence[str], heading: str) -> str:
    near = difflib.get_close_matches(name, names, 1) if len(names) <= _MOST_COMPARED else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"graphwidget.predict(): there is {what}.{hint} {heading}: {listed(names)}."
