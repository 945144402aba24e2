"""Children that hang, print, fork and fill memory are stopped, with all that they started."""

import os
import sys
import time

import psutil
import pytest

from graphwidget.trials.supervised import Limits, supervise

WIDE = Limits(30, 10**10)


def ran(code, limits=WIDE, **options):
    options = {"folder": os.getcwd(), "environment": dict(os.environ), **options}
    return supervise([sys.executable, "-c", code], limits, **options)


def test_a_child_that_ends_is_not_stopped():
    ending = ran("import sys; print('done'); sys.exit(3)")
    assert (ending.stopped, ending.status, ending.tail) == ("", 3, "done\n")


def test_it_has_no_input():
    assert "EOFError" in ran("input()").tail


STOPPED = {
    "ran longer than 2 s": ("while True: pass", Limits(2, 10**10)),
    "printed more than 1 MB": ("while True: print('x' * 1000)", Limits(30, 10**10, output=10**6)),
    "took more than 0.2 GB of memory": ("import time; a = bytearray(4 * 10**8); time.sleep(60)", Limits(30, 2 * 10**8)),
    "started more than 8 processes": (
        "import os, time\nwhile True:\n    os.fork()\n    time.sleep(0.1)",
        Limits(30, 10**10, processes=8),
    ),
}


@pytest.mark.parametrize("why", STOPPED)
def test_what_takes_too_much_is_stopped(why):
    assert ran(*STOPPED[why]).stopped == why


def test_it_is_stopped_when_it_is_cancelled():
    assert ran("while True: pass", cancelled=lambda: True).stopped == "was cancelled"


def test_nothing_that_it_started_is_left():
    code = (
        "import subprocess, sys\n"
        "sleep = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "print(subprocess.Popen(sleep).pid, subprocess.Popen(sleep, start_new_session=True).pid)\n"
    )
    left = [int(pid) for pid in ran(code).tail.split()]
    end = time.monotonic() + 10
    while any(map(psutil.pid_exists, left)) and time.monotonic() < end:
        states = [psutil.Process(pid).status() for pid in left if psutil.pid_exists(pid)]
        if all(state == psutil.STATUS_ZOMBIE for state in states):
            break
        time.sleep(0.05)
    else:
        assert not any(map(psutil.pid_exists, left))
    assert len(left) == 2


def test_no_threads_are_needed_so_that_it_works_while_python_ends():
    code = (
        "import atexit, os, sys\n"
        "from graphwidget.trials.supervised import Limits, supervise\n"
        "def last():\n"
        "    done = supervise([sys.executable, '-c', 'print(5)'], Limits(30, 10**10), folder='.', environment=os.environ)\n"
        "    print('child', done.tail)\n"
        "atexit.register(last)\n"
    )
    assert "child 5" in ran(code).tail
