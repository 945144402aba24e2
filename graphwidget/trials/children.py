"""How the process of a trial begins: as a new one, or as a fork of one in which torch is imported already.

To import torch takes seconds, and most programs that are explained take less. So `explain` forks itself before the
program begins, where nothing but imports has run (`Forks`). The fork waits, and for each trial it forks once more. The
program sees nothing of it: it is no child of the program's process, and it is in another session than its terminal.

A fork draws the random numbers that the program draws, where torch and NumPy are not seeded: their generators were
made before.
"""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, NoReturn, Protocol

import psutil

__all__ = ["Beginning", "Child", "Forks", "Launch", "Launched", "anew"]

_MARK = "GRAPHWIDGET_TRIAL"
_SUBREAPER = 36  # `PR_SET_CHILD_SUBREAPER` of Linux: whoever loses its parent below the process becomes its child
_MOST = 1 << 16  # bytes of a message

# Nothing of the program's folder is imported before all that is needed here is.
_ANEW = """
import sys
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]
sys.path.insert(0, {root!r})
{imports}
del sys.path[0]
{code}
"""


@dataclass(frozen=True)
class Beginning:
    """What a child process begins with.

    Attributes
    ----------
    imports, code
        What it imports, and what it runs then. The code finds the descriptor of a pipe in ``int(sys.argv[-1])``, which
        is closed when the parent is gone; "-1": there is none.
    folder, environment
        In which it runs.
    changes
        What is set there; None: what is taken away.
    """

    imports: str
    code: str
    folder: str
    environment: Mapping[str, str]
    changes: Mapping[str, str | None] = field(default_factory=dict)


class Child(Protocol):
    """A child process, as `subprocess.Popen` is one. Its number is also that of its session."""

    @property
    def pid(self) -> int:
        """Its number."""

    @property
    def returncode(self) -> int | None:
        """Its exit status, below zero for a signal; None: it is running, or nobody has looked."""

    def poll(self) -> int | None:
        """Look whether it has ended."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, or raise `subprocess.TimeoutExpired`."""


class Launched(NamedTuple):
    """A child, and what finds all that has left its session, or has lost its parent."""

    child: Child
    strays: Callable[[], list[psutil.Process]]


# Takes the file for the output, and the descriptor of the pipe.
Launch = Callable[[IO[bytes], int], Launched]


def anew(beginning: Beginning) -> Launch:
    """A new process of Python. It is known by a mark in the environment, which all that it starts inherits."""

    def launch(output: IO[bytes], lifeline: int) -> Launched:
        mark, began = secrets.token_hex(16), time.time()
        environment = dict(beginning.environment)
        _change(environment, {**beginning.changes, _MARK: mark})
        flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        root = str(Path(__file__).resolve().parents[2])
        code = _ANEW.format(root=root, imports=beginning.imports, code=beginning.code)
        child = subprocess.Popen(
            [sys.executable, *flags, "-c", code, str(lifeline)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=beginning.folder,
            env=environment,
            start_new_session=True,
            pass_fds=(lifeline,) if lifeline >= 0 else (),
        )
        return Launched(child, lambda: list(_marked(mark, began)))

    return launch


def _marked(mark: str, began: float) -> Iterator[psutil.Process]:
    for one in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if one.create_time() >= began - 1 and one.environ().get(_MARK) == mark:
                yield one


class Forks:
    """A process that waits, to fork itself for trials."""

    def __init__(self, ours: socket.socket, pid: int) -> None:
        self._socket, self._pid = ours, pid
        self._file = _file_of(ours)
        os.register_at_fork(after_in_child=self._close)

    @classmethod
    def begin(cls) -> Forks | None:
        """Fork this process. Nothing but imports may have run in it.

        Returns
        -------
        Forks | None
            None where that cannot be done, or where this process has more than one thread.
        """
        if sys.platform != "linux" or threading.active_count() > 1:
            return None
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        between = _fork()
        if not between:  # is gone at once, so that the fork is no child of this process
            if _forked():
                os._exit(0)
            ours.close()
            _wait_for_trials(theirs)
        theirs.close()
        os.waitpid(between, 0)
        pid = ours.recv(_MOST)
        return cls(ours, int(pid)) if pid else None

    def launch(self, beginning: Beginning) -> Launch:
        """A fork; a new process, where that cannot be done any more."""

        def launch(output: IO[bytes], lifeline: int) -> Launched:
            try:
                if _file_of(self._socket) != self._file:  # the program has closed it
                    raise OSError
                message = json.dumps({**asdict(beginning), "environment": {}}).encode()
                socket.send_fds(self._socket, [message], [output.fileno(), lifeline])
                child = _Fork(self._socket)
            except (OSError, ValueError):
                return anew(beginning)(output, lifeline)
            return Launched(child, self._below)

        return launch

    def _below(self) -> list[psutil.Process]:
        found = []
        with suppress(psutil.Error):
            for one in psutil.Process(self._pid).children(recursive=True):
                with suppress(psutil.Error):
                    found += [one] if one.status() != psutil.STATUS_ZOMBIE else []
        return found

    def _close(self) -> None:
        """In a fork of the program: it is not to keep the process that waits."""
        with suppress(OSError):
            if _file_of(self._socket) == self._file:
                self._socket.close()


class _Fork:
    """A fork of the process that waits, which tells how it ends."""

    def __init__(self, waits: socket.socket) -> None:
        self._waits = waits
        self.returncode: int | None = None
        self.pid = int(waits.recv(_MOST))

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._waits], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a trial", timeout or 0)
            self.returncode = int(self._waits.recv(_MOST) or -signal.SIGKILL)
        return self.returncode


def _change(environment: MutableMapping[str, str], changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value


def _file_of(one: socket.socket) -> tuple[int, int]:
    """What identifies an open file, whose number may have been given to another one."""
    about = os.fstat(one.fileno())
    return about.st_dev, about.st_ino


def _fork() -> int:
    with warnings.catch_warnings():
        # The threads of libraries for linear algebra are counted, which are made for that.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


# -- in the process that waits, and in its forks ------------------------------------------------------------------


def _forked() -> int:
    """Fork, where no error may go on: the number of the fork, and 0 in it."""
    try:
        return _fork()
    except OSError:
        os._exit(1)


def _wait_for_trials(theirs: socket.socket) -> NoReturn:
    """Fork for each message, and tell the fork's number and its status. Ends with the socket; a fork with its code."""
    try:
        beginning, output, lifeline = _in_a_fork(theirs)
    except BaseException:  # would go on as if this were the process of the program
        os._exit(1)
    _become(beginning, output, lifeline)


def _in_a_fork(theirs: socket.socket) -> tuple[Beginning, int, int]:
    """The message for which this process was forked: in others nothing is returned."""
    theirs.send(str(os.getpid()).encode())
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    if ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0):
        os._exit(1)
    while True:
        message, (*files,), _flags, _address = socket.recv_fds(theirs, _MOST, 2)
        if not message:
            os._exit(0)
        pid = _forked()
        if not pid:
            theirs.close()
            os.setsid()
            return Beginning(**json.loads(message)), files[0], files[1]
        for file in files:
            os.close(file)
        theirs.send(str(pid).encode())
        ended, status = 0, 0
        while ended != pid:  # others have lost their parents
            ended, status = os.waitpid(-1, 0)
        theirs.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(beginning: Beginning, output: int, lifeline: int) -> NoReturn:
    """Run the code of a child. The process ends as Python ends where it raises, or comes to its end."""
    for number in (1, 2):
        os.dup2(output, number)
    os.close(output)
    _change(os.environ, beginning.changes)
    sys.dont_write_bytecode = sys.dont_write_bytecode or bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    tempfile.tempdir = None  # is asked of the environment again
    os.chdir(beginning.folder)
    sys.argv = ["-c", str(lifeline)]
    exec(f"{beginning.imports}\n{beginning.code}", {"__name__": "__main__", "sys": sys})
    raise SystemExit(0)
