"""Start a server, wait until it answers, stop exactly it and its children."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(check: Callable[[], object], what: str, timeout_s: float = 120, every_s: float = 0.05):
    """The first true value of `check`, or TimeoutError. Patient: a wait that ends costs nothing on a slow machine."""
    end = time.monotonic() + timeout_s
    while True:
        if value := check():
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {timeout_s:g} s")
        time.sleep(every_s)


def _end_with_parent() -> None:
    """In the child, before exec: TERM when the test process dies, however it dies (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Server:
    """A child process in a session of its own, listening on `url`, logging to `log_file`."""

    def __init__(self, argv: list[str], url: str, log_file: Path, env: dict[str, str], cwd: Path):
        self.url, self.log_file = url, log_file
        with open(log_file, "wb") as out:
            self._child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        self.pid = self._child.pid

    def wait_ready(self, path: str = "", timeout_s: float = 60) -> None:
        def answers() -> bool:
            if self._child.poll() is not None:
                raise RuntimeError(f"server ended with {self._child.returncode}:\n{self.log()[-3000:]}")
            try:
                with urllib.request.urlopen(self.url + path, timeout=5) as reply:
                    return reply.status < 500
            except urllib.error.HTTPError as error:
                return error.code < 500
            except OSError:
                return False

        try:
            wait_for(answers, f"{self.url} to answer", timeout_s)
        except BaseException:
            self.stop()
            raise

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    def stop(self, grace_s: float = 10) -> None:
        """TERM to the server (which ends its kernels), then KILL to what is left of its session."""
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(grace_s)
            except subprocess.TimeoutExpired:
                pass
        try:
            os.killpg(self.pid, signal.SIGKILL)  # start_new_session made pid the group's id
        except ProcessLookupError:
            pass
        self._child.wait()

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        self.stop()
