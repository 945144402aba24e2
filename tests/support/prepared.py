"""Python commands in forks of an interpreter that has imported torch and graphwidget: a start takes 0.05 s and not 3 s.

`run(...)` is `subprocess.run([sys.executable, ...])` for a test of what a command does. Its child is a process of its
own, with its arguments, folder, environment, streams, exit status and signals. `graphwidget explain` starts a plain
script in a process, too; that one is a fork of the child. Trials of fixes and kernels are started as always.

What a fork cannot show is how an interpreter starts and ends: what is imported when, the flags of Python, variables
that Python reads when it starts, `sitecustomize`, a torch that cannot be imported, GRAPHWIDGET_RECORD, and the
destruction of modules at the end. Tests of those start Python themselves.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import runpy
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import types
import weakref
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NoReturn

# What a command imports by itself when it needs it.
IMPORTS = (
    "torch",
    "torch._dynamo",  # an optimizer imports it
    "bdb",
    "nbformat",
    "IPython.core.completerlib",
    "IPython.core.magics",
    "graphwidget.cli",
    "graphwidget.notebook.extension",
    "graphwidget.notebook.notes",
    "graphwidget.programs.answers",
    "graphwidget.programs.process",
    "graphwidget.programs.recording.records",
    "graphwidget.programs.running",
    "graphwidget.programs.script",
    "graphwidget.trials.asked",
    "graphwidget.trials.effects",
    "graphwidget.trials.rerun",
)
_NAME = "<prepared>"
_SCRIPT = "process.main("  # in the code of the process in which `explain` runs a plain script
_READ_AT_START = ("PYTHON", "GRAPHWIDGET_", "OMP_", "MKL_")  # variables that a fork would take no notice of


# -- in the test's process ----------------------------------------------------------------------------------


def run(
    *arguments: object,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    input: str | None = None,
    timeout: float = 300,
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run([sys.executable, *arguments], capture_output=True, text=True, ...)` returns."""
    environment = dict(os.environ if env is None else env)
    if differs := sorted(name for name, _ in environment.items() ^ _environment().items() if _is_read_at_start(name)):
        raise ValueError(f"Python has started before it could read {', '.join(differs)}: start it anew")
    command = [str(argument) for argument in arguments]
    folder = os.path.abspath(cwd or ".")
    streams = [os.pipe() for _ in range(3)]
    (there, stdin), (stdout, out), (stderr, err) = streams
    connection = _server()
    try:
        request = json.dumps([command, folder, environment]).encode()
        socket.send_fds(connection, [struct.pack("!I", len(request))], [there, out, err])
        connection.sendall(request)
    finally:
        for one in (there, out, err):
            os.close(one)
    (pid,) = struct.unpack("!i", _exactly(connection, 4))
    said: dict[int, bytes] = {}
    threads = [threading.Thread(target=_read, args=(one, said), daemon=True) for one in (stdout, stderr)]
    threads.append(threading.Thread(target=_write, args=(stdin, (input or "").encode()), daemon=True))
    for thread in threads:
        thread.start()
    connection.settimeout(timeout)
    late = None
    try:
        status = _exactly(connection, 4)
    except TimeoutError:
        late = subprocess.TimeoutExpired(command, timeout)
        connection.settimeout(None)
        os.kill(pid, signal.SIGKILL)
        status = _exactly(connection, 4)
    connection.settimeout(None)
    if late is not None:
        raise late
    for thread in threads:
        thread.join()
    texts = [said[one].decode() for one in (stdout, stderr)]
    return subprocess.CompletedProcess([sys.executable, *command], *struct.unpack("!i", status), *texts)


def _is_read_at_start(name: str) -> bool:
    return name.startswith(_READ_AT_START)


@functools.cache
def _environment() -> dict[str, str]:
    """The environment in which the prepared interpreter has started."""
    return dict(os.environ)


@functools.cache
def _server() -> socket.socket:
    here, there = socket.socketpair()
    environment = _environment()
    # Under a name that is no file's: nobody takes its frames, which are around a program's, for the program's own.
    text = Path(__file__).read_text(encoding="utf-8")
    code = f"names = {{'__name__': {_NAME!r}}}; exec(compile({text!r}, {_NAME!r}, 'exec'), names)"
    code = f"{code}; names['serve']({there.fileno()})"
    # Pipes, as the streams of its forks are: Python looks once whether it can seek in them.
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[there.fileno()],
        env=environment,
    )
    there.close()
    atexit.register(process.wait)
    atexit.register(here.close)  # called first
    return here


def _exactly(connection: socket.socket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        more = connection.recv(size - len(got))
        if not more:
            raise RuntimeError("the prepared interpreter has died")
        got += more
    return got


def _read(stream: int, said: dict[int, bytes]) -> None:
    with os.fdopen(stream, "rb") as file:
        said[stream] = file.read()


def _write(stream: int, text: bytes) -> None:
    try:
        with os.fdopen(stream, "wb") as file:
            file.write(text)
    except BrokenPipeError:
        pass


# -- in the prepared interpreter ----------------------------------------------------------------------------


def serve(descriptor: int) -> None:
    """Answer requests until the test's process is gone."""
    connection = socket.socket(fileno=descriptor)
    path = sys.path[1:]  # the first is the place of the program: of this one, where the tests were started
    sys.path[:] = path
    for name in IMPORTS:
        import_module(name)
    _show_a_traceback()
    while True:
        header, streams, _, _ = socket.recv_fds(connection, 4, 3)
        if not header:
            return
        command, folder, environment = json.loads(_exactly(connection, *struct.unpack("!I", header)))
        child = os.fork()
        if child == 0:
            connection.close()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
                os.close(stream)
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(environment)
            tempfile.tempdir = None
            sys.modules["torch"].default_generator.seed()  # Python's own has done so
            sys.modules["numpy"].random.seed()
            subprocess.Popen, _Popen.path = _Popen, path  # type: ignore[misc]
            _become(command, path)
        for stream in streams:
            os.close(stream)
        connection.sendall(struct.pack("!i", child))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(struct.pack("!i", status))


def _show_a_traceback() -> None:
    """IPython reads and parses the files of torch that a traceback shows: once for all forks.

    The backward fails before the engine starts: a process in which the engine has run must not be forked.
    """
    import torch
    from IPython.core import ultratb

    try:
        torch.zeros(1).backward()
    except RuntimeError:
        ultratb.AutoFormattedTB(mode="Context").structured_traceback(*sys.exc_info())


_RealPopen = subprocess.Popen


class _Popen(_RealPopen):  # type: ignore[misc,valid-type]
    """Starts a process, or for that of `explain` forks this one, which has run nothing of the program's."""

    path: list[str] = []

    def _execute_child(self, args: Any, *rest: Any) -> None:
        if not (isinstance(args, list) and args[0] == sys.executable and args[-2] == "-c" and _SCRIPT in args[-1]):
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        sys.stdout.flush()
        self.pid = os.fork()
        self._child_created = True
        if self.pid == 0:
            subprocess.Popen = _RealPopen  # type: ignore[misc]
            os.dup2(2, 1)  # what `process.explain` asks for
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            weakref.finalize._registry.clear()  # type: ignore[attr-defined]  # the folder for the answer is not ours
            _become(args[-2:], self.path)


def _become(command: list[str], path: list[str]) -> NoReturn:
    """Run a command as Python does, and end this process."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = sys.modules["builtins"]
    sys.orig_argv = [sys.executable, *command]
    status = 0
    try:
        if command[0] == "-m":
            sys.argv, sys.path = ["-m", *command[2:]], [os.getcwd(), *path]
            runpy._run_module_as_main(command[1])  # type: ignore[attr-defined]
        elif command[0] == "-c":
            sys.argv, sys.path = ["-c", *command[2:]], ["", *path]
            exec(compile(command[1], "<string>", "exec"), main.__dict__)
        else:
            sys.argv, sys.path = command, [os.path.dirname(os.path.realpath(command[0])), *path]
            loader = SourceFileLoader("__main__", os.path.abspath(command[0]))
            main.__dict__.update(__file__=loader.path, __loader__=loader)
            exec(loader.source_to_code(loader.get_data(loader.path), loader.path), main.__dict__)
    except SystemExit as ended:
        status = _status(ended)
    except BaseException as error:
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_globals.get("__name__") == __name__:
            traceback = traceback.tb_next
        sys.excepthook(type(error), error.with_traceback(traceback), traceback)
        status = 128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    if status == 128 + signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def _status(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return (ended.code or 0) & 0xFF
    print(ended.code, file=sys.stderr)
    return 1
