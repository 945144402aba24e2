"""The child process of a trial: the program runs with edited texts, and an account of it is left in a file.

It stops by itself, between two backward calls, when enough of them have run beyond the failing one; or wherever it is
when its time is up. The parent limits the rest (`graphwidget.trials.supervised`).
"""

from __future__ import annotations

import _thread
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any

from graphwidget.capture.flow.hooks.unpacked import UnpackedTensors
from graphwidget.capture.flow.hooks.unrun import UnrunHooks
from graphwidget.capture.flow.leaves.joined import JoinedParameters
from graphwidget.capture.flow.lineage import LineageMode
from graphwidget.capture.flow.nonfinite_steps import NonFiniteFlow
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.model import Lineage, Place, TextLine
from graphwidget.programs import running, script
from graphwidget.programs.journal import Journal
from graphwidget.programs.target import Program, Start, StoppedProgram, UnreadableProgram
from graphwidget.trials import overlay
from graphwidget.trials.account import account_of, most_held
from graphwidget.trials.files.keeping import Keeper
from graphwidget.trials.rerun import BEGAN, Job

__all__ = ["lines_of", "main"]

_UNDO = """
import sys
sys.path.insert(0, {root!r})
from graphwidget.trials.files import undoing
undoing.after_the_parent({kept!r}, {group})
"""

_MOST_LOSSES = 64  # values of losses that are kept of a place


def main(job_file: str, lifeline: int) -> None:
    """Run a job. The process ends here, or where enough has run.

    Parameters
    ----------
    lifeline
        The descriptor of a pipe that is closed when the parent is gone; -1: there is none.
    """
    job = Job.from_json(Path(job_file).read_text(encoding="utf-8"))
    _end_with_parent(lifeline, job.kept)
    overlay.install({path: content.encode("latin-1") for path, content in job.texts.items()})
    watch = _Watch(job)
    own = str(Path(job.account).parent)
    end = _end_group if lifeline >= 0 else partial(os._exit, 1)
    Keeper(job.kept, os.getcwd(), own, job.begins_from, must=job.must_keep, end=end).listen()
    try:
        if job.cells:
            path = Path(job.target)
            program = Program(Path(path.name) if job.notebook else path, tuple(job.cells), notebook=job.notebook)
            done = running.run(program, job.order, arguments=job.arguments, begin=watch.begin)
            watch.stop("end", done.tracker)
        else:
            start = Start(job.target, tuple(job.arguments), job.module)
            script.run(start, lambda tracker, _journal, _file: watch.stop("end", tracker), watch.begin)
    except (UnreadableProgram, StoppedProgram) as error:
        print(f"graphwidget: {error}", file=sys.stderr)
        sys.exit(2)


class _Watch:
    """Stops the program, and writes its account."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._values: list[float] = []
        self._mode: LineageMode | None = None
        self._outputs: Any = None  # of the call at which it was stopped
        self._inputs: Sequence[Any] = ()  # the same
        self._no_graph: Lineage | None = None  # of the last call on roots without a graph
        self._busy = _thread.allocate_lock()

    def begin(self, tracker: Any, journal: Journal) -> None:
        """The program is about to begin."""
        self._tracker, self._journal = tracker, journal
        self._process, self._began = os.getpid(), time.monotonic()
        if self._job.notebook:
            tracker.notebook = True
            journal.shell.register_magic_function(
                lambda line: None, "line", "graphwidget"
            )  # no view, no trial of a trial
            journal.shell.enable_gui = lambda gui=None: None  # `%matplotlib inline` asks for none
            for names in (journal.shell.user_ns, journal.shell.user_ns_hidden):
                names.pop("__file__", None)
        Path(self._job.account + BEGAN).touch()
        tracker.log.begins = self._before_call
        if self._job.lineage:
            finite = NonFiniteFlow(lambda number: _made_at(tracker, number)) if self._job.nonfinite else None
            frames = tracker.provenance.cell_frames
            name = tracker.write_recorder.watched.name
            self._mode = LineageMode(lambda: lines_of(tracker), name, finite, lambda: frames(sys._getframe()))
            self._hooks = UnrunHooks(
                lambda: lines_of(tracker),
                lambda code: _line_of(tracker, code),
                self._mode.frozen_at,
            )
            self._hooks.begin()
            self._unpacked = UnpackedTensors(lambda: lines_of(tracker), lambda code: _line_of(tracker, code))
            self._unpacked.begin()
            self._joined = JoinedParameters(lambda: lines_of(tracker), name)
            self._joined.begin()
            self._mode.begin()
        _thread.start_new_thread(self._wait, ())

    def _wait(self) -> None:
        """Stop the program when its time is up. A thread of the system's, which no list of Python's threads shows."""
        time.sleep(max(0.0, min(self._job.seconds, self._job.until - time.time())))
        self.stop("time", self._tracker)

    def _before_call(self, n: int, outputs: Any, inputs: Any) -> None:
        if os.getpid() != self._process:
            return
        if self._job.calls is not None and n >= self._job.calls:
            self._outputs, self._inputs = outputs, _each(inputs)
            self.stop("enough", self._tracker)
        if self._job.ends_at is not None and n >= self._job.ends_at:
            self.stop("enough", self._tracker)
        if self._mode is not None:
            if not any(getattr(one, "requires_grad", True) for one in _each(outputs)):
                self._no_graph = self._lineage(n, outputs)
            self._mode.called(n, outputs)
            self._hooks.called(n)
            self._unpacked.called(n)
        self._values.append(_value(outputs))

    def stop(self, ended: str, tracker: Any) -> None:
        """Write the account, and end the process at once: no code of the program's runs after this."""
        if os.getpid() != self._process or not self._busy.acquire(blocking=False):
            return
        text = self._account(tracker, ended) if self._job.lineage != "alone" else self._measured(ended)
        part = Path(f"{self._job.account}.part")
        part.write_text(text, encoding="utf-8")
        os.replace(part, self._job.account)
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(0)

    def _account(self, tracker: Any, ended: str) -> str:
        """What the program did."""
        seconds = time.monotonic() - self._began
        events = tracker.events
        record = replace(tracker.record(), unfinished=ended != "end" or self._journal.unfinished)
        if self._mode is not None:
            failed = max((call.n for call in record.calls if call.result == "raised"), default=None)
            known = self._no_graph
            lineage = known if known is not None and known.call == failed else self._lineage(None)
            record = replace(record, lineage=lineage)
        return account_of(
            record,
            diagnose(record),
            self._journal.errors,
            begun=tracker.log.count,
            failing=self._job.failing,
            seconds=seconds,
            held_bytes=most_held(events, self._job.failing),
            losses=self._by_place(tracker),
            ended=ended,
            cell_of=self._journal.cell,
        ).to_json()

    def _measured(self, ended: str) -> str:
        """Where values left the graph. What its hooks did not do yet they may do behind where its time was up."""
        call = self._job.calls if self._outputs is not None else None
        lineage = self._lineage(call, self._outputs, self._inputs)
        return json.dumps(asdict(replace(lineage, hooks=()) if ended == "time" else lineage))

    def _lineage(self, call: int | None, outputs: Any = (), inputs: Sequence[Any] = ()) -> Lineage:
        frames = self._tracker.provenance.cell_frames(sys._getframe())
        if self._mode is None:
            return Lineage(call)
        measured = self._mode.measured(call, outputs, frames, inputs)
        return replace(
            measured, hooks=self._hooks.found(), unpacked=self._unpacked.found(), joined=self._joined.found()
        )

    def _by_place(self, tracker: Any) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for call in tracker.calls:
            if call.result == "ok" and call.n < len(self._values) and self._values[call.n] == self._values[call.n]:
                losses = found.setdefault(call.place.spot, [])
                if len(losses) < _MOST_LOSSES:
                    losses.append(self._values[call.n])
        return found


def lines_of(tracker: Any) -> tuple[TextLine, ...]:
    """The lines of the user's own code that are running, the innermost first."""
    return _text_lines(tracker.provenance.where(sys._getframe(1)))


def _line_of(tracker: Any, code: CodeType) -> TextLine | None:
    """The first line of a function of the user's own; None: it is another's."""
    book = tracker.provenance.book
    scope = book.scope(code)
    if scope is None:
        return None
    place = book.line_at(scope.base + code.co_firstlineno)
    return TextLine(place.cell, place.file, place.line) if place.line is not None else None


def _made_at(tracker: Any, number: int) -> tuple[TextLine, ...]:
    """The lines at which the node with a sequence number was made."""
    place = tracker.provenance.place_of(number)
    return _text_lines(place) if place is not None else ()


def _text_lines(place: Place) -> tuple[TextLine, ...]:
    stack = (place, *(one for one in reversed(place.stack) if one.line != place.line or one.file != place.file))
    return tuple(TextLine(one.cell, one.file, one.line) for one in stack if one.line is not None)


def _each(outputs: Any) -> Sequence[Any]:
    return outputs if isinstance(outputs, (tuple, list)) else (outputs,)


def _value(outputs: Any) -> float:
    """The value of a scalar loss; not a number where there is none."""
    outputs = _each(outputs)
    try:
        if len(outputs) == 1 and outputs[0].numel() == 1 and not outputs[0].is_complex():
            return float(outputs[0].detach())
    except Exception:  # a tensor of a kind of its own
        pass
    return float("nan")


def _end_group() -> None:
    """End this process and its forks."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _end_with_parent(lifeline: int, kept: Path) -> None:
    """End this process and its group when the parent is gone; and if memory runs out, let it be this process's end.

    What it has changed in files is put back by a process that it starts last. If both are ended at once, as where power
    is lost, files stay as they are then; their copies lie in the folder for temporary files.
    """
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    if lifeline < 0 or not hasattr(os, "killpg"):
        return
    os.set_inheritable(lifeline, False)

    def wait() -> None:
        while True:
            try:
                if not os.read(lifeline, 1):
                    break
            except InterruptedError:
                continue
            except OSError:
                return
        with suppress(OSError):
            code = _UNDO.format(root=str(Path(__file__).resolve().parents[2]), kept=str(kept), group=os.getpgrp())
            subprocess.Popen(
                [sys.executable, "-I", "-c", code], start_new_session=True, cwd=os.sep, env=dict(os.environ)
            )
        _end_group()

    _thread.start_new_thread(wait, ())
