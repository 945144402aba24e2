"""Children that hang, print, fork and fill memory are stopped, with all that they started: new ones and forks."""

import json
import os
import subprocess
import sys
import time

import psutil
import pytest

from graphwidget.trials.children import Beginning, anew
from graphwidget.trials.supervised import Ending, Limits, supervise

WIDE = Limits(30, 10**10)


def beginning(code, imports="", folder=None, changes=()):
    return Beginning(imports, code, folder or os.getcwd(), dict(os.environ), dict(changes))


def a_new_one(code, limits=WIDE, cancelled=False, **options):
    return supervise(anew(beginning(code, **options)), limits, lambda: cancelled)


# A process forks itself where nothing but imports has run: not that of the tests.
HOST = """
import json, os, sys
from dataclasses import astuple
from graphwidget.trials.children import Beginning, Forks
from graphwidget.trials.supervised import Limits, supervise
forks = Forks.begin()
{between}
code, limits, cancelled, folder, changes = json.loads(sys.argv[1])
for _ in range({times}):
    launch = forks.launch(Beginning("", code, folder or os.getcwd(), {{}}, dict(changes)))
    print(json.dumps(astuple(supervise(launch, Limits(*limits), lambda: cancelled))))
"""


def a_fork(code, limits=WIDE, cancelled=False, folder=None, changes=(), between="", times=1):
    asked = json.dumps(
        [code, [limits.seconds, limits.memory, limits.output, limits.processes], cancelled, folder, changes]
    )
    host = [sys.executable, "-c", HOST.format(between=between, times=times), asked]
    done = subprocess.run(host, capture_output=True, text=True, timeout=60)
    endings = [Ending(*json.loads(line)) for line in done.stdout.splitlines()]
    assert len(endings) == times, done.stderr
    return endings[0] if times == 1 else endings


@pytest.fixture(params=[a_new_one, a_fork])
def ran(request):
    return request.param


def test_a_child_that_ends_is_not_stopped(ran):
    ending = ran("import sys; print('done'); sys.exit(3)")
    assert (ending.stopped, ending.status, ending.tail) == ("", 3, "done\n")


def test_an_error_is_shown_at_its_end(ran):
    ending = ran("import atexit\natexit.register(print, 'last')\nraise OSError('no')")
    assert ending.status == 1 and ending.tail.endswith("OSError: no\nlast\n")


def test_a_signal_is_its_status(ran):
    assert ran("import os, signal\nos.kill(os.getpid(), signal.SIGABRT)").status == -6


def test_it_has_no_input(ran):
    assert "EOFError" in ran("input()").tail


def test_it_has_its_folder_and_its_environment(ran, tmp_path, monkeypatch):
    monkeypatch.setenv("OTHER", "x")
    code = (
        "import os, sys, tempfile\n"
        "print(os.getcwd(), os.environ['ONE'], os.environ.get('OTHER'), tempfile.gettempdir(), os.getsid(0) == os.getpid())"
    )
    where = str(tmp_path)
    ending = ran(code, folder=where, changes=[("ONE", "1"), ("OTHER", None), ("TMPDIR", where)])
    assert ending.tail == f"{where} 1 None {where} True\n"


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
def test_what_takes_too_much_is_stopped(ran, why):
    assert ran(*STOPPED[why]).stopped == why


def test_it_is_stopped_when_it_is_cancelled(ran):
    assert ran("while True: pass", cancelled=True).stopped == "was cancelled"


def test_nothing_that_it_started_is_left(ran):
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
        "from graphwidget.trials.children import Beginning, anew\n"
        "from graphwidget.trials.supervised import Limits, supervise\n"
        "def last():\n"
        "    done = supervise(anew(Beginning('', 'print(5)', '.', os.environ)), Limits(30, 10**10))\n"
        "    print('child', done.tail)\n"
        "atexit.register(last)\n"
    )
    assert "child 5" in a_new_one(code).tail


# -- forks alone ------------------------------------------------------------------------------------------------


def test_forks_know_nothing_of_each_other_and_nothing_of_what_ran_since():
    code = "import sys\nprint(hasattr(sys, 'mine'), sys.modules['__main__'].__dict__.get('x'))\nsys.mine = 1"
    endings = a_fork(code, between="x = sys.mine = 1", times=2)
    assert [one.tail for one in endings] == ["False None\n"] * 2


def test_the_program_has_no_child_more_and_its_end_is_that_of_the_forks(tmp_path):
    code = (
        "import os, sys\n"
        "from graphwidget.trials.children import Forks\n"
        "forks = Forks.begin()\n"
        "print(forks._pid)\n"
        "try:\n"
        "    os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError:\n"
        "    print('none')\n"
        "sys.stdout.flush()\n"
        "os.fork()\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    pid, none = done.stdout.split()
    assert none == "none"
    end = time.monotonic() + 10
    while psutil.pid_exists(int(pid)) and psutil.Process(int(pid)).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    "between",
    ["os.closerange(3, 64)", "os.closerange(3, 64); os.pipe(); os.pipe()", "os.kill(forks._pid, 9)"],
    ids=["closed", "another file under its number", "killed"],
)
def test_a_child_is_a_new_one_where_the_process_that_waits_is_gone(between):
    assert a_fork("print(5)", between=between).tail == "5\n"


def test_a_process_with_threads_is_not_forked():
    code = (
        "import threading\n"
        "from graphwidget.trials.children import Forks\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "print(Forks.begin())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "None\n"
