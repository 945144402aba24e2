"""The child process of a trial ends when its parent is gone, whatever it does."""

import os
import subprocess
import sys
import time

import psutil

from graphwidget.programs import process

PARENT = """
import os, sys
from graphwidget.trials.supervised import Limits, supervise
child = '''
import os, pathlib, sys
from graphwidget.programs import trying
trying._end_with_parent(int(sys.argv[-1]), pathlib.Path(sys.argv[1], "trial", "kept"))
os.fork()
print(os.getpid(), file=open(sys.argv[1] + "/" + str(os.getpid()), "w"))
while True: pass
'''
supervise([sys.executable, "-c", child, sys.argv[1]], Limits(300, 10**10), folder=".", environment=os.environ)
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


def test_a_trial_ends_with_its_parent_and_so_does_what_it_started(tmp_path):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)])
    until(lambda: len(os.listdir(tmp_path)) == 2)
    pids = [int(name) for name in os.listdir(tmp_path)]
    assert not any(map(is_gone, pids))
    parent.kill()
    parent.wait()
    until(lambda: all(map(is_gone, pids)))


def test_the_limit_of_a_program_is_not_that_of_its_trials(tmp_path):
    waits = [sys.executable, "-c", "import time; time.sleep(3)"]
    status, stopped = process._wait(subprocess.Popen(waits), 0.5, tmp_path / "ran")
    assert status != 0 and stopped == "ran longer than 0.5 s (--timeout)"
    (tmp_path / "ran").touch()
    assert process._wait(subprocess.Popen(waits), 0.2, tmp_path / "ran") == (0, "")
