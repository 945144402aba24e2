"""Run a notebook in a kernel of its own, cell by cell, and fetch the answer from there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import ipykernel_launcher
import zmq
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.launcher import launch_kernel

import graphwidget
from graphwidget.programs.journal import ANSWER, CELL, Answer, print_exit
from graphwidget.programs.target import Program, Start, StoppedProgram

__all__ = ["explain", "run"]

CANNOT_START = 3  # exit status of a kernel that has printed the reason itself
START_SECONDS = 120
MOST_SAID = 3  # findings that the end of a program names
GRACE = 5.0  # seconds that an interrupted cell may take to stop
SHUTDOWN = 15.0  # seconds that a kernel may take to end, with the program's exit handlers
_TICK = 200  # milliseconds between two checks whether the kernel lives

# Everything that is needed here is imported before the notebook's folder is on Python's path.
_START = """
import sys
sys.path[0:1] = [{root!r}]
from graphwidget.programs.target import StoppedProgram, check_torch
try:
    check_torch()
    from graphwidget.programs import kernel
except Exception as error:
    why = str(error) if isinstance(error, StoppedProgram) else f"{{type(error).__name__}}: {{error}}"
    print(f"graphwidget: cannot start: {{why}}", file=sys.stderr)
    sys.exit({status})
sys.path[0:1] = []
kernel.main({connection!r}, {launcher!r}, {script!r}, {arguments!r})
"""


def explain(
    program: Program,
    order: Sequence[int],
    *,
    format_: str,
    start: Start,
    timeout: float | None = None,
    wanted: bool | None = False,
    try_seconds: float | None = None,
    progress: Callable[[Iterator[int]], Iterator[int]] = iter,
) -> Answer:
    """Run the cells as Jupyter runs them, and go on after an error. Their output goes to standard error.

    Parameters
    ----------
    program, order
        What to run, and the numbers of the cells from 1.
    format_, start
        Of the answer; how the program is started.
    timeout
        Seconds that one cell may run, None: no limit.
    wanted, try_seconds
        Whether fixes are tried, and how long each may run; see `graphwidget.trials.asked.Asked`.
    progress
        Wraps the iterator over the steps, for a progress bar.

    Raises
    ------
    StoppedProgram
        If the kernel does not start or dies, if a cell that is to stop cannot be interrupted, or if Ctrl+C is pressed
        again.

    Notes
    -----
    On Ctrl+C, or when a cell has run too long, it is the last one to run.
    """
    with tempfile.TemporaryDirectory() as folder, _kernel(program, start, Path(folder) / "kernel.json") as kernel:
        stopped = ""
        for step in progress(iter(range(1, len(order) + 1))):
            cell = order[step - 1]
            kernel.doing = f"in cell {cell}"
            reply, stopped = kernel.run(program.cells[cell - 1], cell, timeout)
            if stopped:
                break
            if reply.get("status") == "aborted":
                raise StoppedProgram(f"{program.path}: the kernel gave no answer to cell {cell}")
            if any(part.get("source") == "ask_exit" for part in reply.get("payload", ())):
                print_exit(cell, order[step:])
                break
        kernel.doing = "after the last cell"
        ran = {"cells": program.cells, "order": order, "wanted": wanted, "seconds": try_seconds}
        return replace(kernel.answer(format_, start, ran | {"stopped": bool(stopped)}), stopped=stopped)


def run(program: Program, start: Start) -> int:
    """Run a notebook from its first cell to its last, or to the first that raises, and return the exit status.

    Its output goes where the cells send it. The last lines on standard error name the findings and count the calls.

    Raises
    ------
    StoppedProgram
        As in `explain`.
    """
    with tempfile.TemporaryDirectory() as folder, _kernel(program, start, Path(folder) / "kernel.json") as kernel:
        kernel.stdout = sys.stdout
        for step, cell in enumerate(program.order, 1):
            kernel.doing = f"in cell {cell}"
            reply, stopped = kernel.run(program.cells[cell - 1], cell, None)
            if stopped:
                raise StoppedProgram(stopped)
            if kernel.raised or reply.get("status") != "ok":
                break
            if any(part.get("source") == "ask_exit" for part in reply.get("payload", ())):
                print_exit(cell, program.order[step:])
                break
        kernel.doing = "after the last cell"
        ran = {"cells": program.cells, "order": program.order, "wanted": False, "seconds": None, "stopped": False}
        answer = kernel.answer("json", start, ran)
    said = json.loads(answer.text)
    loud = [one for one in said["findings"] if one["severity"] != "info"] if not kernel.raised else []
    for finding in loud[:MOST_SAID]:
        _show(f"graphwidget: {finding['headline'] or finding['kind']}{_spot(finding['cause'])}\n")
    more = f" More: {start.explained_by}" if said["findings"] else ""
    _show(f"graphwidget: {said['summary']}{more}\n")
    return int(said["exit"])


def _spot(place: dict[str, Any] | None) -> str:
    """`` (proj/log.py:2 in note)``, `` (In[3]:2)``; empty where it is unknown."""
    if place is None:
        return ""
    function = f" in {place['function']}" if place["file"] and place["function"] else ""
    return f" ({place['file'] or 'In[{}]'.format(place['cell'])}:{place['line']}{function})"


class _Kernel:
    """A kernel's process and the channels to it."""

    def __init__(self, path: Path, process: subprocess.Popen[bytes], client: BlockingKernelClient) -> None:
        self.path, self.process, self.client = path, process, client
        self.doing = "before the first cell"
        self.poller = zmq.Poller()
        self.ran = self.raised = 0
        self.stdout: TextIO = sys.stderr  # where cells print: standard output is for the answer of `explain`

    def connect(self, connection_file: Path) -> None:
        """Wait until the kernel answers on both channels."""
        end = time.monotonic() + START_SECONDS
        while not _is_complete(connection_file):
            self._alive()
            if time.monotonic() > end:
                raise StoppedProgram(f"{self.path}: the kernel did not start within {START_SECONDS} s")
            time.sleep(0.02)
        self.client.load_connection_file(str(connection_file))
        self.client.start_channels(stdin=False, hb=False)
        for channel in (self.client.shell_channel, self.client.iopub_channel):
            self.poller.register(channel.socket, zmq.POLLIN)
        while not self._finished(self.client.kernel_info(), time.monotonic() + 1.0):
            if time.monotonic() > end:
                raise StoppedProgram(f"{self.path}: the kernel did not answer within {START_SECONDS} s")

    def run(self, code: str, cell: int, timeout: float | None) -> tuple[dict[str, Any], str]:
        """Run a cell; the content of its reply, and why it was stopped (empty: it was not)."""
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        metadata = {CELL: cell, "cellId": f"cell-{cell}"}
        request = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(request)
        asked = request["header"]["msg_id"]
        why = ""
        try:
            reply = self._finished(asked, time.monotonic() + timeout if timeout else None)
            if reply is None:
                why = f"{self.path}: cell {cell} ran longer than {timeout:g} s (--timeout)"
        except KeyboardInterrupt:
            reply, why = None, f"{self.path}: interrupted in cell {cell}"
        if reply is None:
            self.signal(signal.SIGINT)
            reply = self._finished(asked, time.monotonic() + GRACE)
            if reply is None:
                raise StoppedProgram(f"{why}, in a call that cannot be interrupted")
        self.ran += 1
        self.raised += reply.get("status") == "error"
        return reply, why

    def answer(self, format_: str, start: Start, ran: dict[str, Any]) -> Answer:
        """Ask the kernel for the answer. `ran`: the cells, the order in which they ran, and whether fixes are tried."""
        content = {"format": format_, "target": start.target, "arguments": start.arguments, **ran}
        request = self.client.session.msg(f"{ANSWER}_request", content)
        self.client.shell_channel.send(request)
        reply = self._finished(request["header"]["msg_id"], None)
        if reply is None or "problem" in reply:
            raise StoppedProgram(f"{self.path}: no answer could be made: {reply and reply['problem']}")
        return Answer(reply["text"], reply["status"])

    def _finished(self, asked: str, deadline: float | None) -> dict[str, Any] | None:
        """The reply to a request, after all output of it has arrived. None: the deadline came first."""
        reply: dict[str, Any] | None = None
        idle, idle_at = False, 0.0
        while reply is None or not idle:
            if deadline is not None and time.monotonic() > deadline:
                return None
            # An interrupt can leave a request without a reply, and a flood of output can lose the end of it.
            if (idle or reply is not None) and time.monotonic() > idle_at + GRACE:
                return reply or {"status": "aborted"}
            ready = dict(self.poller.poll(_TICK))
            if not ready:
                self._alive()
            if self.client.iopub_channel.socket in ready:
                idle = self._output(self.client.get_iopub_msg(timeout=0), asked) or idle
                idle_at = time.monotonic()
            if self.client.shell_channel.socket in ready:
                message = self.client.get_shell_msg(timeout=0)
                if message["parent_header"].get("msg_id") == asked:
                    reply, idle_at = message["content"], time.monotonic()
        return reply

    def _output(self, message: dict[str, Any], asked: str) -> bool:
        """Show the output of a cell; whether the message says that the request is done."""
        content, kind = message["content"], message["msg_type"]
        if kind == "stream":
            _show(content["text"], self.stdout if content["name"] == "stdout" else sys.stderr)
        elif kind == "error":
            _show("\n".join(content["traceback"]) + "\n")
        elif kind in ("execute_result", "display_data"):
            _show(str(content["data"].get("text/plain", "")) + "\n", self.stdout)
        ours = message["parent_header"].get("msg_id") == asked
        return bool(ours and kind == "status" and content["execution_state"] == "idle")

    def _alive(self) -> None:
        status = self.process.poll()
        if status is None:
            return
        if status == CANNOT_START:
            raise StoppedProgram("")
        why = f"signal {-status}, {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        memory = ": often that memory ran out" if status == -9 else ""
        ran = f"Until then {self.ran} cells ran, {self.raised} of them raised; the record of them is lost."
        raise StoppedProgram(f"{self.path}: the kernel died {self.doing} ({why}{memory}). {ran}")

    def signal(self, number: int) -> None:
        """Send a signal to the kernel and the processes that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def close(self, *, at_once: bool) -> None:
        """End the kernel: it shuts down by itself, or is killed."""
        if self.process.poll() is None and not at_once:
            self.client.shutdown()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(SHUTDOWN)
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()
        self.client.stop_channels()


@contextmanager
def _kernel(program: Program, start: Start, connection_file: Path) -> Iterator[_Kernel]:
    """A kernel, in the folder of a notebook, that is gone afterwards."""
    path = program.path
    folder = str(path.resolve().parent) if program.notebook else None
    code = _START.format(
        root=str(Path(graphwidget.__file__).resolve().parent.parent),
        status=CANNOT_START,
        connection=str(connection_file),
        launcher=ipykernel_launcher.__file__,
        script=None if program.notebook else str(program.path),
        arguments=start.arguments,
    )
    # Without frozen modules as in Jupyter: a debugger may look.
    command = [sys.executable, "-Xfrozen_modules=off", "-c", code]
    sys.stderr.flush()
    process = launch_kernel(command, stdout=2, stderr=2, cwd=folder)
    kernel = _Kernel(path, process, BlockingKernelClient())
    whole = False
    try:
        kernel.connect(connection_file)
        yield kernel
        whole = True
    except KeyboardInterrupt:
        raise StoppedProgram(f"{path}: interrupted {kernel.doing}") from None
    finally:
        kernel.close(at_once=not whole)


def _is_complete(connection_file: Path) -> bool:
    try:
        return bool(json.loads(connection_file.read_text()))
    except (FileNotFoundError, json.JSONDecodeError):
        return False


def _show(text: str, stream: TextIO | None = None) -> None:
    stream = stream or sys.stderr
    stream.write(text)
    stream.flush()
