"""Programs explained in forks of one process that has imported torch; see forked.py."""

import functools
import json
import subprocess
import sys
from pathlib import Path

from runs import plain

WORKER = Path(__file__).parent / "forked.py"


@functools.cache
def worker():
    """Return a process that has already imported torch; see forked.py."""
    command = [sys.executable, str(WORKER)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def forked(path):
    """Return (document, reason why there is none) for a program, run in a fork of the worker."""
    worker().stdin.write(f"{path}\t{plain.order_of(path)}\n")
    worker().stdin.flush()
    line = worker().stdout.readline()
    return json.loads(line) if line else (None, "the worker has died")
