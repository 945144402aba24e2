"""What a run of a program did, as plain data: the two sides that `judge` compares.

An account crosses from a process to another as JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import takewhile
from typing import Any

from graphwidget.diagnosis.no_graph.numbers.of_a_loss import made_numbers
from graphwidget.model import BackwardCall, CellError, Event, Finding, Record, TextEdit, cut

__all__ = ["Account", "Next", "Raised", "account_of", "most_held"]

_STEADY = 2  # calls of one line that must have reached a leaf before it is said that they always do
_QUOTED = 120  # characters of a message that are quoted


@dataclass(frozen=True)
class Raised:
    """An error of a cell or program: in which step (from 1), its type, its message, and where."""

    step: int
    type: str
    message: str
    spot: str = ""

    @property
    def text(self) -> str:
        """The beginning of its first line, and where."""
        first = cut(next(iter(self.message.strip().splitlines()), ""), _QUOTED)
        return f"{self.type}{f': {first}' if first else ''}{f' ({self.spot})' if self.spot else ''}"


@dataclass(frozen=True)
class Next:
    """A fix for what is left wrong in a program that runs with a fix in it already.

    Attributes
    ----------
    headline
        Of the finding.
    error
        Whether the program raised. Otherwise graphs pile up, something gets no gradient, or something else is wrong.
    id, text, price, starves, choice
        As in `Fix`.
    edits
        Of the edited texts. Their cells have the numbers of the program's cells.
    """

    headline: str
    id: str
    text: str
    edits: tuple[TextEdit, ...]
    price: str = ""
    starves: tuple[str, ...] = ()
    error: bool = True
    choice: bool = False


@dataclass(frozen=True)
class Account:
    """What a run did.

    Attributes
    ----------
    begun, ran
        Backward calls that began, and that succeeded.
    iteration
        The highest iteration of a loop in which a call succeeded; -1: none was in a loop.
    outside_loops
        Whether the last of the calls that succeeded was in no loop.
    errors
        What cells, or the program, raised.
    findings
        How many findings of severity error or warning there are of a kind, and of a headline.
    infos
        The headlines of the other findings.
    reached
        Leaves to which the calls that succeeded gave a gradient.
    reached_later
        Those to which a call behind the failing one did.
    steady
        Leaves to which each call before the failing one, of the line that failed then, gave a gradient, if there were
        at least two.
    starved
        Parameters of optimizers for which no step found a gradient.
    moved
        What steps of optimizers, or the same by hand, have modified.
    held_bytes
        The most bytes of saved tensors at any event that knows, before the call that failed; 0: none does.
    losses
        In a trial: the values of scalar roots, by the place of their call.
    seconds
        How long the program ran.
    ended
        ``"end"``: by itself; ``"enough"``: stopped, because enough further calls had run; ``"time"``: when the time
        was up.
    next
        In a trial: the fixes for the error that it ended with, if that is explained; else for graphs that pile up, for
        a line at which values were measured to leave the graph, or for what else is wrong.
    numbers
        Lines of a loss that were measured to take numbers or new tensors out of values with a graph, and the leaves
        behind these; None: nothing was measured.
    """

    begun: int = 0
    ran: int = 0
    iteration: int = -1
    outside_loops: bool = False
    errors: tuple[Raised, ...] = ()
    findings: Mapping[str, int] = field(default_factory=dict)
    headlines: Mapping[str, str] = field(default_factory=dict)
    infos: tuple[str, ...] = ()
    reached: tuple[str, ...] = ()
    reached_later: tuple[str, ...] = ()
    steady: tuple[str, ...] = ()
    starved: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    held_bytes: int = 0
    losses: Mapping[str, Sequence[float]] = field(default_factory=dict)
    seconds: float = 0.0
    ended: str = "end"
    next: tuple[Next, ...] = ()
    numbers: Mapping[str, Sequence[str]] | None = None

    def to_json(self) -> str:
        """As text for another process."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Account:
        """The account that `to_json` wrote."""
        fields = json.loads(text)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        errors = tuple(Raised(**one) for one in fields["errors"])
        return Account(**{**fields, **lists, "errors": errors, "next": tuple(map(_next, fields["next"]))})


def _next(fields: dict[str, Any]) -> Next:
    edits = (TextEdit(**{**one, "start": tuple(one["start"]), "end": tuple(one["end"])}) for one in fields["edits"])
    return Next(**{**fields, "edits": tuple(edits), "starves": tuple(fields["starves"])})


def account_of(
    record: Record,
    findings: Iterable[Finding],
    errors: Iterable[CellError],
    *,
    begun: int,
    failing: int,
    seconds: float,
    held_bytes: int = 0,
    losses: Mapping[str, Sequence[float]] | None = None,
    ended: str = "end",
    until_it_failed: bool = False,
    cell_of: Callable[[int | None], int | None] | None = None,
) -> Account:
    """The account of a run.

    Parameters
    ----------
    begun
        How many calls began.
    failing
        The n of the call that failed in the run that is to be mended; the number of calls, if none did.
    until_it_failed
        Leave out what happened from that call on: a notebook goes on after an error.
    cell_of
        In a trial: turns the number by which the record knows a cell into that of the program's cell.
    """
    calls = [call for call in record.calls if not until_it_failed or call.n < failing]
    good = [call for call in calls if call.result == "ok"]
    raised = sum(call.result == "raised" for call in calls)
    findings = tuple(findings)
    loud = [finding for finding in findings if finding.severity != "info"]
    moving = [write for write in record.writes if write.paths and (write.optimizer or ".grad" in write.by)]
    return Account(
        begun=begun,
        ran=max(0, (min(begun, failing) if until_it_failed else begun) - raised),
        iteration=max((call.place.iteration for call in good if call.place.iteration is not None), default=-1),
        outside_loops=bool(good) and good[-1].place.iteration is None,
        errors=tuple(_raised(error) for error in errors if not error.leaves),
        findings=dict(Counter(finding.kind for finding in loud)),
        headlines={finding.kind: finding.headline or finding.text for finding in reversed(loud)},
        infos=tuple(finding.headline for finding in findings if finding.severity == "info"),
        reached=_reached(good),
        reached_later=_reached(call for call in good if call.n >= failing),
        steady=_steady(record.calls, failing),
        starved=tuple(sorted({path for one in record.starved for path in one.paths})),
        moved=tuple(sorted({path for write in moving for path in write.paths})),
        held_bytes=held_bytes,
        losses=losses or {},
        seconds=seconds,
        ended=ended,
        next=tuple(_next_fixes(record, findings, cell_of)) if cell_of is not None else (),
        numbers=made_numbers(record),
    )


def most_held(events: Iterable[Event], failing: int) -> int:
    """The most bytes of saved tensors at an event before the call that failed: what comes then, one run only has."""
    until = takewhile(lambda event: event.call is None or event.call < failing, events)
    return max((event.held_bytes or 0 for event in until), default=0)


def _next_fixes(
    record: Record, findings: Sequence[Finding], cell_of: Callable[[int | None], int | None]
) -> Iterator[Next]:
    """The fixes of the error in which a program ended, else of what is left wrong, as far as they are edits."""
    error = bool(findings) and findings[0].severity == "error"
    warnings = [one for one in findings if one.severity == "warning"]
    piles = [one for one in warnings if one.kind == "leak"]
    sure = [one for one in warnings if one.cut_at is None or record.lineage is not None]  # a cut is to be measured
    for finding in findings[:1] if error else (piles or sure)[:1]:
        for fix in finding.fixes:
            if fix.edits:
                edits = (replace(one, cell=cell_of(one.cell)) for one in fix.edits)
                yield Next(finding.headline, fix.id, fix.text, tuple(edits), fix.price, fix.starves, error, fix.choice)


def _reached(calls: Iterable[BackwardCall]) -> tuple[str, ...]:
    return tuple(sorted({path for call in calls for path in (*call.reached, *_returned(call))}))


def _steady(calls: Sequence[BackwardCall], failing: int) -> tuple[str, ...]:
    failed = next((call for call in calls if call.n == failing), None)
    if failed is None:
        return ()
    earlier = [call for call in calls if call.n < failing and call.result == "ok"]
    reached = [set(_reached([call])) for call in earlier if call.place.spot == failed.place.spot]
    return tuple(sorted(set.intersection(*reached))) if len(reached) >= _STEADY else ()


def _returned(call: BackwardCall) -> Iterable[str]:
    """The tensors whose gradients a call returned: it writes no `.grad`."""
    asked = call.inputs or () if call.api == "autograd.grad" else ()
    return (ref.paths[0] for ref in asked if ref.paths)


def _raised(error: CellError) -> Raised:
    return Raised(error.step, error.type, error.message, error.place.spot if error.place is not None else "")
