"""Explain a plain script or a module: it runs in a process of its own, whose last act is to write the answer.

So the program can end, or be ended, in any way, and standard output has nothing but the answer on it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import graphwidget
from graphwidget.programs.journal import Answer, Journal
from graphwidget.programs.target import Start, StoppedProgram, UnreadableProgram, check_torch

if TYPE_CHECKING:
    from graphwidget.capture.tracker import Tracker

__all__ = ["explain", "main"]

GRACE = 5.0  # seconds that a program may take to end when it is asked to
_TOLD = "graphwidget: stopped. It is explained as far as it ran, when it has ended (Ctrl+C: end it at once)"

# Nothing of the script's folder is imported before all that is needed here is.
_START = """
import sys
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]
sys.path.insert(0, {root!r})
from graphwidget.programs import process
process.main({format_!r}, {start!r}, {answer!r}, {wanted!r}, {seconds!r})
"""


def explain(
    start: Start,
    *,
    format_: str,
    timeout: float | None = None,
    wanted: bool | None = False,
    try_seconds: float | None = None,
) -> Answer:
    """Run a program as Python runs it. What it prints goes to standard error.

    On Ctrl+C, or when its time is up, the program is interrupted, and explained as far as it ran.

    Parameters
    ----------
    start
        What to run.
    format_
        Of the answer.
    timeout
        Seconds that the program may run, None: no limit.
    wanted, try_seconds
        Whether fixes are tried, and how long each may run; see `graphwidget.trials.asked.Asked`.

    Raises
    ------
    StoppedProgram
        If it cannot be found or started, or leaves no answer: it cannot be interrupted, or Ctrl+C is pressed again.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "answer.json"
        code = _START.format(
            root=str(Path(graphwidget.__file__).resolve().parent.parent),
            format_=format_,
            start=asdict(start),
            answer=str(file),
            wanted=wanted,
            seconds=try_seconds,
        )
        sys.stderr.flush()
        flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        try:
            with _process([sys.executable, *flags, "-c", code]) as process:
                status, stopped = _wait(process, timeout, Path(f"{file}.ran"))
        except subprocess.TimeoutExpired:
            why = f"{start.target}: ran longer than {timeout:g} s (--timeout), in a call that cannot be interrupted"
            raise StoppedProgram(why) from None
        except KeyboardInterrupt:
            raise StoppedProgram(f"{start.target}: interrupted") from None
        if not file.exists():
            why = (
                f"{stopped}, and left no record"
                if stopped
                else f"{_how_it_ended(status)}, and the record of it is lost"
            )
            raise StoppedProgram(f"{start.target}: {why}")
        found = json.loads(file.read_text(encoding="utf-8"))
    if "problem" in found:
        raise StoppedProgram(found["problem"])
    return Answer(found["text"], found["status"], f"{start.target}: {stopped}" if stopped else "")


def _wait(process: subprocess.Popen[bytes], timeout: float | None, ran: Path) -> tuple[int, str]:
    """Wait for the program, and for the trials of its fixes, which have limits of their own.

    Returns
    -------
    tuple[int, str]
        The exit status of the process, and why the program was stopped.
    """
    stopped = ""
    try:
        return process.wait(timeout), stopped
    except subprocess.TimeoutExpired:
        if ran.exists():
            return _answer_of(process), stopped
        stopped = f"ran longer than {timeout:g} s (--timeout)"
        process.send_signal(signal.SIGINT)
        _until(ran, process, GRACE)
    except KeyboardInterrupt:
        if ran.exists():
            return _answer_of(process, interrupted=True), stopped
        stopped = "interrupted"
        print(_TOLD, file=sys.stderr, flush=True)
        _hand_on(process)
    return _answer_of(process), stopped


def _answer_of(process: subprocess.Popen[bytes], *, interrupted: bool = False) -> int:
    """Wait for the answer. Ctrl+C ends the trials: then the rest of it takes no time."""
    if not interrupted:
        try:
            return process.wait()
        except KeyboardInterrupt:
            pass
    _hand_on(process)
    try:
        return process.wait(GRACE)
    except subprocess.TimeoutExpired:
        raise KeyboardInterrupt from None


def _until(ran: Path, process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait until the program has run.

    Raises
    ------
    subprocess.TimeoutExpired
        If that takes too long.
    """
    end = time.monotonic() + seconds
    while not ran.exists() and process.poll() is None:
        if time.monotonic() > end:
            raise subprocess.TimeoutExpired(process.args, seconds)
        time.sleep(0.02)


def _hand_on(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the program, too, unless the terminal does: it interrupts all processes of the group in front."""
    try:
        terminal = os.open(os.ctermid(), os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        process.send_signal(signal.SIGINT)
        return
    try:
        if os.tcgetpgrp(terminal) != os.getpgrp():
            process.send_signal(signal.SIGINT)
    finally:
        os.close(terminal)


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone afterwards, also if this one is asked to end."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, end) if in_main else None
    process = subprocess.Popen(command, stdout=2)
    try:
        yield process
    finally:
        if process.poll() is None:
            _stop(process)
        if in_main:
            signal.signal(signal.SIGTERM, before)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    if process.poll() is None:
        process.kill()
        process.wait()


def _how_it_ended(status: int) -> str:
    if status < 0:
        memory = ": often that memory ran out" if status == -9 else ""
        return f"the program was ended by signal {-status}, {signal.Signals(-status).name}{memory}"
    return f"the program ended its process with status {status} before anything else could run (as `os._exit` does)"


# -- in the program's process -------------------------------------------------------------------------------


def main(
    format_: str,
    fields: dict[str, object],
    file: str,
    wanted: bool | None = False,
    seconds: float | None = None,
) -> None:
    """Run the program that a `Start` of these `fields` names; write the answer to a file when it has ended."""
    start = Start(**fields)  # type: ignore[arg-type]
    try:
        check_torch()
        from graphwidget.programs import answers, script, trying  # noqa: F401 (for its forks)
        from graphwidget.trials import asked, children, effects, rerun
    except Exception as error:  # what is imported as torch may be anything
        why = str(error) if isinstance(error, StoppedProgram) else f"{type(error).__name__}: {error}"
        return _write(file, problem=f"cannot start: {why}")
    del sys.path[0]
    forks = children.Forks.begin() if wanted is not False else None
    again = rerun.now(start.target, start.arguments, module=start.module)
    seen = effects.watch(again.folder, os.path.dirname(file))
    wish = asked.Asked(wanted, again, seen, seconds, forks)

    def report(tracker: Tracker, journal: Journal, code: str) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # but for trials, which may be interrupted
        Path(f"{file}.ran").touch()
        try:
            answer = answers.answer(format_, start, tracker, journal, code if start.module else None, wish)
            _write(file, text=answer.text, status=answer.status)
        except Exception as error:
            _write(file, problem=f"{start.target}: no answer could be made: {type(error).__name__}: {error}")

    try:
        script.run(start, report, seen.follow)
    except UnreadableProgram as error:
        _write(file, problem=str(error))
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program has been stopped, and is to end
        raise


def _write(file: str, **answer: object) -> None:
    """The whole answer, or none: the program may be ended at any moment."""
    part = Path(f"{file}.part")
    part.write_text(json.dumps(answer), encoding="utf-8")
    os.replace(part, file)
