"""What a run of a program did, as plain data: the two sides that `judge` compares.

An account crosses from a process to another as JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from graphwidget.model import BackwardCall, CellError, Finding, Record, cut

__all__ = ["Account", "Raised", "account_of"]

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
    moved
        What steps of optimizers, or the same by hand, have modified.
    held_bytes
        The most bytes of saved tensors at any event that knows; 0: none does.
    losses
        In a trial: the values of scalar roots, by the place of their call.
    seconds
        How long the program ran.
    ended
        ``"end"``: by itself; ``"enough"``: stopped, because enough further calls had run; ``"time"``: when the time
        was up.
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
    moved: tuple[str, ...] = ()
    held_bytes: int = 0
    losses: Mapping[str, Sequence[float]] = field(default_factory=dict)
    seconds: float = 0.0
    ended: str = "end"

    def to_json(self) -> str:
        """As text for another process."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Account:
        """The account that `to_json` wrote."""
        fields = json.loads(text)
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        errors = tuple(Raised(**one) for one in fields.pop("errors"))
        return Account(**{**fields, **lists, "errors": errors})


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
    """
    calls = [call for call in record.calls if not until_it_failed or call.n < failing]
    good = [call for call in calls if call.result == "ok"]
    raised = sum(call.result == "raised" for call in calls)
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
        moved=tuple(sorted({path for write in moving for path in write.paths})),
        held_bytes=held_bytes,
        losses=losses or {},
        seconds=seconds,
        ended=ended,
    )


def _reached(calls: Iterable[BackwardCall]) -> tuple[str, ...]:
    return tuple(sorted({path for call in calls for path in (*call.reached, *_returned(call))}))


def _returned(call: BackwardCall) -> Iterable[str]:
    """The tensors whose gradients a call returned: it writes no `.grad`."""
    asked = call.inputs or () if call.api == "autograd.grad" else ()
    return (ref.paths[0] for ref in asked if ref.paths)


def _raised(error: CellError) -> Raised:
    return Raised(error.step, error.type, error.message, error.place.spot if error.place is not None else "")
