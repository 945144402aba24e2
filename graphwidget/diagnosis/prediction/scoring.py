"""How right a prediction is: answer by answer, each with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from graphwidget.diagnosis.prediction.names import Names
from graphwidget.diagnosis.prediction.outcome import Outcome
from graphwidget.diagnosis.wording import number
from graphwidget.model import SlotState
from graphwidget.model.predictions import Answer

__all__ = ["Said", "answers"]


@dataclass(frozen=True)
class Said:
    """A prediction of a call, by index. None: nothing was predicted.

    `frees` are the slots by (uid of the node, position in it), which hold in every snapshot.
    """

    call: str
    fails: bool | None = None
    fails_at: int | None = None  # uid
    frees: tuple[tuple[int, int], ...] | None = None


def answers(said: Said, names: Names, outcome: Outcome) -> tuple[Answer, ...]:
    """The right and wrong answers: whether the call fails, then the slots."""
    scoring = _Scoring(said, names, outcome)
    return (*scoring.failure(), *scoring.slots())


class _Scoring:
    """`names` are those of the outcome's graph."""

    def __init__(self, said: Said, names: Names, outcome: Outcome) -> None:
        self.said, self.names, self.outcome, self.graph = said, names, outcome, outcome.graph
        past = bool(outcome.call)
        self.call = outcome.call or said.call
        self.raises = "raised" if past else "would raise"
        self.be = "was" if past else "would be"
        self.not_be = "was not" if past else "would not be"

    # -- whether it fails ------------------------------------------------------------------------------

    def failure(self) -> Iterator[Answer]:
        """Answers about whether the call raises, and where."""
        said, outcome = self.said, self.outcome
        if said.fails is None:
            return
        if outcome.ok is None:
            text = f"Open: whether {said.call} would raise cannot be known: {outcome.why}."
            yield Answer("fails", None, text)
            return
        right = said.fails is not outcome.ok
        yield Answer("fails", right, f"{_word(right)}: {self._ran() if outcome.ok else self._raised()}.")
        if said.fails_at is not None and not outcome.ok:
            yield self._failed_at(said.fails_at)

    def _ran(self) -> str:
        raises, has = ("did not raise", "had") if self.outcome.call else ("would not raise", "has")
        ran = "ran" if self.outcome.call else "runs"
        return f"{self.call} {raises}: each node that {ran} {has} what it {'needed' if self.outcome.call else 'needs'}"

    def _raised(self) -> str:
        return f"{self.call} {self.raises}{self._at()}: {self.outcome.why}"

    def _at(self) -> str:
        if self.outcome.fails_at is None:
            return " before any node runs" if self.outcome.at_once else ""
        return f" at {self.names.of_node(self.outcome.fails_at)}"

    def _failed_at(self, uid: int) -> Answer:
        index = self.graph.index_of.get(uid)
        at = self.outcome.fails_at
        if at is None and not self.outcome.at_once:
            return Answer("fails_at", None, f"Open: at which node {self.call} {self.raises} is not known.")
        if index is not None and index == at:
            return Answer("fails_at", True, f"Right: it {self.raises} at {self.names.of_node(at)}.")
        name = self.names.of_node(index) if index is not None else "the node that was named"
        if at is None:
            return Answer("fails_at", False, f"Wrong: it {self.raises} at no node, {name} neither: none runs.")
        order = (
            "runs before and has what it needs" if index is not None and self.outcome.runs(index) else "does not run"
        )
        return Answer("fails_at", False, f"Wrong: not at {name}, which {order}, but at {self.names.of_node(at)}.")

    # -- what it frees ---------------------------------------------------------------------------------

    def slots(self) -> Iterator[Answer]:
        """Answers about each slot that was named, and each other slot that is freed."""
        if self.said.frees is None:
            return
        named, gone = self._named()
        for uid, position in gone:
            yield Answer(
                "frees", None, f"Open: slot {position} of node {uid} is not in the graph that {self.call} ran."
            )
        for slot in named:
            yield self._named_slot(slot)
        others = [slot for slot in self.names.everything if slot not in named]
        freed = [slot for slot in others if self.outcome.frees(slot)]
        for slot in freed:
            yield Answer(
                self.names.of_slot(slot),
                False,
                f"Missed: {self.names.of_slot(slot)} {self.be} freed, too: {self._did(slot)}.",
            )
        if any(self.outcome.frees(slot) is None for slot in others):
            why = f": {self.outcome.why}" if self.outcome.why else ""
            yield Answer("frees", None, f"Open: what else {self.call} frees cannot be known{why}.")
        elif not named and not gone and not freed:
            yield Answer("frees", True, f"Right: nothing {self.be} freed{self._why_nothing()}.")

    def _named(self) -> tuple[dict[int, None], list[tuple[int, int]]]:
        """The slots that were named, in this graph; and those that are not in it."""
        found: dict[int, None] = {}
        gone = []
        for uid, position in self.said.frees or ():
            index = self.graph.index_of.get(uid)
            slots = self.graph.slots_of(index) if index is not None else range(0)
            if position < len(slots):
                found[slots[position]] = None
            else:
                gone.append((uid, position))
        return found, gone

    def _named_slot(self, slot: int) -> Answer:
        name, freed = self.names.of_slot(slot), self.outcome.frees(slot)
        if freed is None:
            why = f": {self.outcome.why}" if self.outcome.why else ""
            return Answer(name, None, f"Open: whether {name} {self.be} freed cannot be known{why}.")
        if freed:
            return Answer(name, True, f"Right: {name} {self.be} freed: {self._did(slot)}.")
        return Answer(name, False, f"Wrong: {name} {self.not_be} freed: {self._why_not(slot)}.")

    def _did(self, slot: int) -> str:
        """Why it is freed."""
        node = self.names.of_node(self.graph.node_with(slot))
        if self.outcome.call:
            return f"{self.outcome.call} ran {node} and did not retain the graph"
        return f"{node} runs, and nothing retains the graph"

    def _why_not(self, slot: int) -> str:
        outcome, state = self.outcome, self.graph.slot_state[slot]
        node = self.graph.node_with(slot)
        if state == SlotState.FREED:
            n = self.graph.slot_freed_by[slot]
            return f"{number(n) if n >= 0 else 'an earlier call'} has freed it already"
        if state == SlotState.UNSAVED:
            return f"nothing is saved there, because {self.names.of_node(node)} does not need it"
        if outcome.ok is False and not outcome.runs(node):
            return f"{self.call} {self.raises}{self._at()}{'' if outcome.at_once else ', before it is freed'}"
        if outcome.keeps:
            return f"{outcome.call} with {outcome.keeps} keeps it" if outcome.call else f"{outcome.keeps} keeps it"
        return f"{self.names.of_node(node)} does not run"

    def _why_nothing(self) -> str:
        """The reason, if rightly no slot was named."""
        outcome = self.outcome
        if outcome.ok is False and outcome.at_once:
            return f": {self.call} {self.raises}{self._at()}"
        if outcome.keeps:
            return f": {outcome.keeps} keeps everything"
        held = any(SlotState(self.graph.slot_state[slot]).keeps_memory for slot in self.names.everything)
        if not held:
            return ": no node that it reaches holds a saved tensor"
        return (
            f": {self.call} {self.raises}{self._at()} first" if outcome.ok is False else ": no node that holds one runs"
        )


def _word(right: bool) -> str:
    return "Right" if right else "Wrong"
