"""One trial: the program runs in a child process with a fix in it, and what it did there is judged."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from graphwidget.model import BackwardCall, CellError, Event, Finding, Fix, Record, Trial
from graphwidget.trials.account import Account, Next, account_of, most_held
from graphwidget.trials.children import Beginning, Launch, anew
from graphwidget.trials.cut_findings import depends_on_cuts
from graphwidget.trials.files.kept import Kept, PutBack
from graphwidget.trials.files.left import Left, named
from graphwidget.trials.files.undoing import JOB
from graphwidget.trials.judge import hung, judge
from graphwidget.trials.rerun import BEGAN, CannotEdit, Job, Rerun, edited
from graphwidget.trials.supervised import Ending, Limits, supervise

__all__ = ["FURTHER", "MEMORY", "START", "Attempt", "Ran", "attempt", "run"]

FURTHER = 3  # calls beyond the failing one that a trial runs
START = 4.0  # seconds that a process needs to begin
MEMORY = 1_000_000_000  # bytes that a trial may take besides twice what the program took
_LAST = 1.0  # seconds that a child gets for its account, when its time is up
_QUOTED = 200  # characters of a child's last words


@dataclass(frozen=True)
class Ran:
    """The run that is to be mended.

    Attributes
    ----------
    rerun
        How it was started.
    record, findings, errors
        What is known of it.
    begun
        How many backward calls began.
    seconds, memory
        How long it took, and its most memory.
    events
        The ticks of its timeline, with the bytes of saved tensors.
    cell_of
        Turns the number by which the record knows a cell into that of the program's cell.
    zero_grads
        Whether optimizers made steps by gradients of zeros.
    followed
        How many seconds it took when values were followed from operation to operation; None: they were not.
    left
        What it left in files.
    must_keep
        Whether it may run again only as far as the files that it changes can be put back.
    stopped
        Whether it was stopped from outside. Then it runs again as far as it had come.
    launch
        How a process for a trial begins.
    """

    rerun: Rerun
    record: Record
    findings: Sequence[Finding]
    errors: Sequence[CellError]
    begun: int
    seconds: float
    events: Sequence[Event] = ()
    memory: int = 0
    cell_of: Callable[[int | None], int | None] = lambda number: number
    zero_grads: bool = False
    followed: float | None = None
    left: Left = field(default_factory=Left)
    must_keep: bool = True
    stopped: bool = False
    launch: Callable[[Beginning], Launch] = anew

    @property
    def ends_at(self) -> int | None:
        """How many backward calls it makes, if it does not come to its end."""
        return self.begun if self.stopped else None


class Attempt(NamedTuple):
    """What came of a trial, how many seconds it took, and the fixes for the error in which it ended.

    `later` are the leaves that got a gradient from calls behind the failing one. `notes` are sentences about files that
    are not as they were. `last`: another trial of the program would decide nothing either, because of its files.
    """

    trial: Trial
    seconds: float
    next: tuple[Next, ...] = ()
    later: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    last: bool = False


def attempt(
    ran: Ran,
    finding: Finding,
    fix: Fix,
    seconds: float,
    whole: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> Attempt:
    """Try a fix.

    Parameters
    ----------
    seconds, whole
        How long the program may run; how long the child may live.
    cancelled
        Asked again and again whether to stop.
    """
    call = next((one for one in ran.record.calls if one.n == finding.call), None)
    failing = finding.call if finding.call is not None else ran.begun
    try:
        copy = edited(ran.rerun, fix, ran.cell_of, _step_of(ran, finding, call))
    except CannotEdit as why:
        return Attempt(Trial(None, str(why)), 0.0)
    before = account_of(
        ran.record,
        ran.findings,
        ran.errors,
        begun=ran.begun,
        failing=failing,
        seconds=ran.seconds,
        held_bytes=most_held(ran.events, failing),
        until_it_failed=finding.call is not None,
    )
    failed = finding.call is not None or bool(ran.errors)
    # Where one value left the graph, another may do so behind it.
    follows = ran.followed is not None and depends_on_cuts(finding, call) and ran.followed <= seconds
    with tempfile.TemporaryDirectory() as folder:
        job = Job(
            copy.rerun.target,
            list(copy.rerun.arguments),
            copy.rerun.module,
            list(copy.rerun.cells),
            list(copy.rerun.order),
            copy.rerun.notebook,
            copy.texts,
            failing,
            failing + 1 + FURTHER if failed else None,
            seconds,
            time.time() + whole - _LAST,
            str(Path(folder, "account.json")),
            lineage="too" if follows else "",
            nonfinite=bool(ran.record.nonfinite),
            ends_at=None if failed else ran.ends_at,
        )
        ending, files = run(job, ran, copy.rerun, Limits(whole, 2 * ran.memory + MEMORY), cancelled)
        account, began = Path(job.account), Path(job.account + BEGAN)
        ran_for = time.time() - began.stat().st_mtime if began.exists() else None
        after = Account.from_json(account.read_text(encoding="utf-8")) if account.exists() else None
    if files.why_not:
        return Attempt(
            Trial(None, files.why_not, round(ending.seconds, 2)), ending.seconds, notes=files.notes, last=True
        )
    if after is None:
        return Attempt(_without_account(ending, ran.seconds, ran_for), ending.seconds, notes=files.notes)
    tried = judge(before, after, finding, fix, call, copy)
    if tried.ok is False and ran.left.files and _ended_at_once(before, after):
        what = named(ran.left.files, ran.rerun.folder)
        tried = replace(tried, ok=None, why=f"it ended before any backward call, as it may where it finds {what}")
    return Attempt(tried, ending.seconds, after.next, after.reached_later, files.notes)


def run(job: Job, ran: Ran, rerun: Rerun, limits: Limits, cancelled: Callable[[], bool]) -> tuple[Ending, PutBack]:
    """Run a job in a child process, in the folder that is to have its account, and put back the files that it changed.

    Parameters
    ----------
    ran, rerun
        The run before; what is run now.
    """
    folder = Path(job.account).parent
    file, temporary = folder / JOB, folder / "tmp"
    left = replace(ran.left, folder=rerun.folder)
    job = replace(job, begins_from=list(left.begins_from), must_keep=ran.must_keep)
    file.write_text(job.to_json(), encoding="utf-8")
    temporary.mkdir()
    changed = left.changed() if ran.must_keep else ""
    if changed:  # so it is used by somebody else, and cannot be put back
        return Ending("", 0, "", 0.0, 0), PutBack(f"did not run: {changed} has changed since the program ended")
    kept = Kept(job.kept, left, must=ran.must_keep)
    beginning = Beginning(
        "from graphwidget.programs import trying",
        f"trying.main({str(file)!r}, int(sys.argv[-1]))",
        rerun.folder,
        rerun.environment,
        {
            "GRAPHWIDGET_RECORD": None,
            "PYTHONDONTWRITEBYTECODE": "1",
            "MPLBACKEND": "agg",  # opens no window
            **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)),
        },
    )
    if kept.cannot:
        return Ending("", 0, "", 0.0, 0), PutBack(kept.cannot)
    files = PutBack()
    try:
        ending = supervise(ran.launch(beginning), limits, cancelled)
    finally:  # also on Ctrl+C
        files = kept.put_back()
    return ending, files


def _ended_at_once(before: Account, after: Account) -> bool:
    """Whether the program left by itself before any backward call, and had made some before."""
    left = not after.errors or after.errors[0].type == "SystemExit"
    return left and after.ended == "end" and not after.begun and before.begun > 0


def _without_account(ending: Ending, before: float, ran_for: float | None) -> Trial:
    """The verdict on a child that was stopped, or that ended its process in a way that leaves no account."""
    seconds = round(ending.seconds, 2)
    if ending.stopped == "was cancelled":
        return Trial(None, "it was cancelled", seconds)
    if ending.stopped.startswith("ran longer"):
        if ran_for is None:
            return Trial(None, f"its process had not begun after {ending.seconds:.0f} s", seconds)
        return hung(before, ran_for)
    if ending.stopped:
        return Trial(False, f"it {ending.stopped}, and was stopped", seconds)
    last = next((line for line in reversed(ending.tail.splitlines()) if line.strip()), "")
    said = f": {last.strip()[:_QUOTED]}" if last else ""
    return Trial(None, f"its process ended with status {ending.status} and left no account{said}", seconds)


def _step_of(ran: Ran, finding: Finding, call: BackwardCall | None) -> int:
    """The step from 1 in which the error of a finding was raised; 0: it is not known."""
    place = finding.failed_at or finding.made_at
    for error in ran.errors:
        if (call is not None and error.message == call.error) or (place is not None and error.place == place):
            return error.step
    return 0
