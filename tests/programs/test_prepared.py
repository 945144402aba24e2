"""A fork of the prepared interpreter does what an interpreter does that has just started, as far as tests use it."""

import subprocess
import sys

import prepared
import pytest
from test_cli import file

SHOWS = (
    "import os, sys\n"
    "print(sys.argv, sys.orig_argv[1:], sys.path, os.getcwd(), __name__, vars(sys.modules['__main__']) is globals())\n"
    "print(os.environ['MARK'], sys.stdin.read(), sys.stdout.seekable(), file=sys.stderr, flush=True)\n"
)
MORE = "import torch\nw = torch.ones(2, requires_grad=True)\n"
ENDS = {
    "at its end": "",
    "a status": "sys.exit(3)",
    "a message": "sys.exit('no data')",
    "an error": "def f():\n    raise ValueError('no')\nf()",
    "an interrupt": "raise KeyboardInterrupt",
    "a signal": "import signal\nsys.stdout.flush()\nsignal.raise_signal(signal.SIGTERM)",
    "os._exit": "sys.stdout.flush()\nos._exit(7)",
    "what atexit runs": "import atexit\natexit.register(print, 'last')",
    "a thread that goes on": (
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('later'))).start()"
    ),
    "torch": MORE + "(w * w).sum().backward()\nprint(w.grad, torch.get_num_threads())",
    "an error in torch": MORE + "y = w.exp().sum()\ny.backward()\ny.backward()",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_fork_is_like_an_interpreter_that_has_just_started(tmp_path, monkeypatch, how):
    monkeypatch.setenv("MARK", how)
    text = SHOWS + ENDS[how] + "\n"
    (tmp_path / "inner").mkdir()
    file(tmp_path / "inner", text, "program.py")
    commands = [["inner/program.py"], ["-c", text], ["-m", "inner.program"]]
    of_each = commands if how == "an error" else [commands[list(ENDS).index(how) % 3]]
    for command in of_each:
        command = [*command, "x", "-y"]
        new = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, input="some", timeout=120
        )
        fork = prepared.run(*command, cwd=tmp_path, input="some")
        assert (fork.returncode, fork.stdout, fork.stderr) == (new.returncode, new.stdout, new.stderr)


def test_forks_know_nothing_of_each_other():
    prepared.run("-c", "import torch\ntorch.mine = 1\ntorch.set_default_dtype(torch.float64)")
    done = prepared.run("-c", "import torch\nprint(hasattr(torch, 'mine'), torch.get_default_dtype())")
    assert done.stdout == "False torch.float32\n"
    numbers = (
        "import random, numpy, torch\nprint(random.random())\nprint(numpy.random.rand())\nprint(torch.rand(1).item())"
    )
    one, other = (prepared.run("-c", numbers).stdout.split() for _ in range(2))
    assert not {*one} & {*other}


def test_what_takes_too_long_is_ended():
    with pytest.raises(subprocess.TimeoutExpired):
        prepared.run("-c", "import time\ntime.sleep(60)", timeout=0.5)
    assert prepared.run("-c", "print(1)").stdout == "1\n"


@pytest.mark.parametrize("name", ["PYTHONPATH", "PYTHONIOENCODING", "GRAPHWIDGET_RECORD"])
def test_an_environment_that_python_reads_when_it_starts_is_refused(monkeypatch, name):
    prepared.run("-c", "")
    monkeypatch.setenv(name, "other")
    with pytest.raises(ValueError, match=name):
        prepared.run("-c", "")
