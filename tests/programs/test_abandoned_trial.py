"""The child process of a trial ends when its parent is gone, whatever it does."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from graphwidget.programs import process

PARENT = """
import os, sys
from graphwidget.trials.children import Beginning, Forks, anew
from graphwidget.trials.supervised import Limits, supervise
child = '''
import os, pathlib, sys
from graphwidget.programs import trying
trying._end_with_parent(int(sys.argv[-1]), pathlib.Path({here!r}, "trial", "kept"))
os.fork()
print(os.getpid(), file=open({here!r} + "/" + str(os.getpid()), "w"))
while True: pass
'''
launch = Forks.begin().launch if sys.argv[2] == "fork" else anew
supervise(launch(Beginning("", child.format(here=sys.argv[1]), ".", os.environ)), Limits(300, 10**10))
"""


def is_gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("how", ["fork", "new"])
def test_a_trial_ends_with_its_parent_and_so_does_what_it_started(tmp_path, how):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path), how])
    until(lambda: len(os.listdir(tmp_path)) == 2)
    pids = [int(name) for name in os.listdir(tmp_path)]
    assert not any(map(is_gone, pids))
    parent.kill()
    parent.wait()
    until(lambda: all(map(is_gone, pids)))


def test_the_limit_of_a_program_is_not_that_of_its_trials(tmp_path):
    waits = [sys.executable, "-c", "import time; time.sleep(3)"]
    # A background job ignores SIGINT and hands that on.
    program = subprocess.Popen(waits, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    status, stopped = process._wait(program, 0.5, tmp_path / "ran")
    assert status != 0 and stopped == "ran longer than 0.5 s (--timeout)"
    (tmp_path / "ran").touch()
    assert process._wait(subprocess.Popen(waits), 0.2, tmp_path / "ran") == (0, "")
