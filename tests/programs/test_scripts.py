"""A plain script and a module run under `graphwidget run` and `explain` as under Python itself."""

import io
import json
import os
import py_compile
import signal
import subprocess
import sys
import zipapp

import prepared
import pytest
from test_cli import file

from graphwidget.programs import script
from graphwidget.programs.target import Start

TWICE = "import torch\nw = torch.ones(2, requires_grad=True)\ny = w.exp().sum()\ny.backward()\ny.backward()\n"
SHOWS = (
    "import os, sys\nnames = sorted(globals())\nprint(names, __name__, __file__, __package__, __spec__ and __spec__.name)\n"
    "print(sys.argv, sys.path[0], os.getcwd(), sys.modules['__main__'].__dict__ is globals(), __builtins__)\n"
)


def python(folder, *command, **options):
    """In an interpreter that has just started: for how a program starts and ends."""
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=120, **options
    )


def run(folder, *command, **options):
    return python(folder, "-m", "graphwidget", "run", *command, **options)


def run_prepared(folder, *command):
    return prepared.run("-m", "graphwidget", "run", *command, cwd=folder)


def explained(folder, *command, start=lambda folder, *command: prepared.run(*command, cwd=folder)):
    done = start(folder, "-m", "graphwidget", "explain", "--no-try", "--format", "json", *command)
    return done, json.loads(done.stdout) if done.stdout else None


def package(folder):
    inside = folder / "pkg" / "inner"
    inside.mkdir(parents=True)
    file(folder / "pkg", "print('pkg is imported')\n", "__init__.py")
    file(folder / "pkg", "WORD = 'beside'\n", "beside.py")
    file(folder / "pkg", SHOWS + "from .beside import WORD\nprint(WORD)\n", "train.py")
    file(inside, "", "__init__.py")
    file(inside, SHOWS, "__main__.py")
    (folder / "deep").mkdir()
    file(folder / "deep", SHOWS, "script.py")


@pytest.mark.parametrize(
    "command",
    [
        ["deep/script.py"],
        ["deep/script.py", "-m", "--format", "json", "--", "-h"],
        ["-m", "pkg.train", "--lr", "3", "-m"],
        ["-m", "pkg.inner"],
    ],
)
def test_a_program_sees_what_it_sees_under_python(tmp_path, command):
    package(tmp_path)
    plain, ours = python(tmp_path, *command), run(tmp_path, *command)
    assert plain.returncode == 0, plain.stderr
    assert (ours.stdout, ours.returncode) == (plain.stdout, 0)
    done, document = explained(tmp_path, *command, start=python)
    assert plain.stdout in done.stderr and done.returncode == 0
    module = command[0] == "-m"
    assert (document["target"], document["argv"]) == (command[module], command[1 + module :])


IS = "import sys\nprint(__name__, __file__, __package__, __cached__, type(__loader__), sys.argv, sys.path[0])\n"


@pytest.mark.parametrize("target", ["app", "app.pyz", "app.pyc", "-"])
def test_a_folder_an_archive_compiled_code_and_standard_input_run_as_under_python(
    tmp_path, monkeypatch, capsys, target
):
    (tmp_path / "app").mkdir()
    file(tmp_path / "app", IS, "__main__.py")
    zipapp.create_archive(tmp_path / "app", tmp_path / "app.pyz")
    py_compile.compile(str(tmp_path / "app" / "__main__.py"), str(tmp_path / "app.pyc"))
    plain = python(tmp_path, target, "-m", "--", "x", input=IS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["pytest"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(IS.encode())))
    main = script.main_of(Start(target, ("-m", "--", "x")))
    exec(main.code, main.module.__dict__)
    assert capsys.readouterr().out == plain.stdout != ""


ENDS = {
    "at its end": "print('done')",
    "a status": "import sys\nsys.exit(3)",
    "a message": "raise SystemExit('no data')",
    "a large status": "raise SystemExit(256 + 7)",
    "no error": "raise SystemExit",
    "an error": "raise ValueError('no')",
    "no Python": "print(",
    "its own hook": "import sys\nsys.excepthook = lambda *three: print('hook', three[2].tb_lineno)\nraise OSError",
    "an error in a thread": "import threading\nthreading.Thread(target=lambda: 1 / 0).start()",
    "what atexit runs": "import atexit\natexit.register(print, 'last')\nprint('first')",
    "a thread that goes on": (
        "import threading\ngo = threading.Event()\n"
        "def work():\n    go.wait()\n    threading.main_thread().join()\n    print('main thread lives:', threading.main_thread().is_alive())\n"
        "threading.Thread(target=work).start()\ngo.set()\n"
    ),
    "a pool that nobody shuts down": (
        "from concurrent.futures import ThreadPoolExecutor\nprint(ThreadPoolExecutor().submit(int, '3').result())"
    ),
    "an interrupt": "raise KeyboardInterrupt",
    "Ctrl+C": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)",
    "SIGTERM": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "os._exit": "import os\nos._exit(5)",
    "what it read": "import sys\nprint(sys.stdin.read().upper())",
    "workers": (
        "import multiprocessing\ndef double(x):\n    return 2 * x\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        print('doubled', pool.map(double, [21]))\n"
    ),
    "a fork": "import os, sys\nif os.fork() == 0:\n    sys.exit(4)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_program_ends_as_it_ends_under_python(tmp_path, how):
    path = str(file(tmp_path, ENDS[how]))
    plain, ours = (python(tmp_path, *command, path, input="in") for command in ([], ["-m", "graphwidget", "run"]))
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    lines = ours.stderr.splitlines()
    told = [line for line in lines if line.startswith("graphwidget: ")]
    assert len(told) == (0 if how in ("SIGTERM", "os._exit") else 1)
    assert [line for line in lines if line not in told] == plain.stderr.splitlines()


def test_the_explanation_stands_under_the_traceback_and_the_last_line_counts(tmp_path):
    file(tmp_path, TWICE, "train.py")
    done = run_prepared(tmp_path, "train.py", "--steps", "2")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.index("RuntimeError: Trying") < done.stderr.index("✕ ② needs saved tensors that ① freed.")
    last = done.stderr.splitlines()[-1]
    assert last == ("graphwidget: 1 finding. 2 backward calls, 1 raised. More: graphwidget explain train.py --steps 2")


def test_the_end_of_a_program_that_ran_names_its_findings_and_their_lines(tmp_path):
    file(tmp_path, "def keep(store, loss):\n    store.append(loss)\n", "log.py")
    loop = "import torch\nfrom log import keep\nw, store = torch.ones(3, requires_grad=True), []\n"
    loop += "for _ in range(6):\n    loss = w.exp().sum()\n    loss.backward()\n    keep(store, loss)\n"
    file(tmp_path, loop, "train.py")
    lines = run_prepared(tmp_path, "train.py").stderr.splitlines()
    assert lines[-2] == "graphwidget: Graphs of 6 iterations pile up in `store`. (log.py:2 in keep)"
    assert lines[-1].startswith("graphwidget: 1 finding. 6 backward calls, all ran.")


OURS = ("-m", "graphwidget", "explain", "--no-try")


def test_what_a_setting_leaves_out_is_said_and_gets_no_patch(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.graphwidget]\ncode = ["-log"]\n')
    file(tmp_path, "def keep(store, loss):\n    store.append(loss)\n", "log.py")
    loop = "import torch\nfrom log import keep\nw, store = torch.ones(3, requires_grad=True), []\n"
    loop += "for _ in range(6):\n    loss = w.exp().sum()\n    loss.backward()\n    keep(store, loss)\n"
    file(tmp_path, loop, "train.py")
    document = json.loads(prepared.run(*OURS, "--format", "json", "train.py", cwd=tmp_path).stdout)
    assert document["notes"] == ["Left out, so that its lines are unknown: log."]
    assert all(
        edit["file"] != "log.py" for one in document["findings"] for fix in one["fixes"] for edit in fix["edits"]
    )
    patch = prepared.run(*OURS, "--diff", "train.py", cwd=tmp_path).stdout
    assert "log.py" not in patch


def test_the_document_says_how_the_program_ended_and_where(tmp_path):
    package(tmp_path)
    file(tmp_path / "pkg", "from .beside import WORD\n" + TWICE, "bad.py")
    done, document = explained(tmp_path, "-m", "pkg.bad", "x")
    assert (done.returncode, document["exit"]) == (1, 1)
    assert [(error["step"], error["cell"], error["line"]) for error in document["errors"]] == [(1, None, 6)]
    assert document["findings"][0]["kind"] == "second_backward"


@pytest.mark.parametrize(
    "how, status, exit_",
    [("a status", 1, 3), ("a message", 1, 1), ("no error", 0, 0), ("no Python", 1, 1), ("what atexit runs", 0, 0)],
)
def test_the_status_of_explain_and_of_the_program_are_two_things(tmp_path, how, status, exit_):
    file(tmp_path, ENDS[how], "ends.py")
    done, document = explained(tmp_path, "ends.py")
    assert (done.returncode, document["exit"]) == (status, exit_)


def test_options_behind_a_script_are_its_own_and_that_is_said_where_it_knows_none(tmp_path):
    (tmp_path / "none.py").write_text("import sys\nprint(sys.argv[1:])\n")
    (tmp_path / "own.py").write_text("import sys\nprint('--timeout' in sys.argv)\n")
    done, _document = explained(tmp_path, "none.py", "--no-try", "--format=json", "-x")
    assert "['--no-try', '--format=json', '-x']" in done.stderr
    assert (
        "--no-try, --format went to none.py. Options of graphwidget stand before it: graphwidget explain" in done.stderr
    )
    done, _document = explained(tmp_path, "own.py", "--timeout", "5")
    assert "True" in done.stderr and "stand before" not in done.stderr


def test_cells_get_arguments_too_and_a_notebook_takes_none(tmp_path):
    file(tmp_path, "# %%\nimport sys\nprint(sys.argv)\nsys.exit(3)\n", "cells.py")
    done, document = explained(tmp_path, "cells.py", "--epochs", "2")
    assert "['cells.py', '--epochs', '2']" in done.stderr
    assert (document["argv"], document["exit"]) == (["--epochs", "2"], 3)
    file(tmp_path, "# %%\n%time import sys\nprint(sys.argv)\n", "magic.py")
    done, document = explained(tmp_path, "magic.py", "x")
    assert "['magic.py', 'x']" in done.stderr and document["argv"] == ["x"]
    done, document = explained(tmp_path, "a.ipynb", "x")
    assert (done.returncode, document) == (2, None)


CANNOT = {
    "no file": (["missing.py"], "No such file"),
    "a directory": (["pkg"], "irectory"),
    "no module": (["-m", "nowhere"], "-m nowhere: no such module"),
    "no module in a package": (["-m", "pkg.nowhere"], "-m pkg.nowhere: no such module"),
    "a module that is no package": (["-m", "pkg.beside.x"], "-m pkg.beside.x: no such module"),
    "a package": (["-m", "pkg"], "-m pkg: is a package without a module `__main__`"),
    "a relative name": (["-m", ".pkg"], "whole name"),
    "C code": (["-m", "_socket"], "no Python code"),
}


@pytest.mark.parametrize("command", ["run", "explain"])
@pytest.mark.parametrize("what", CANNOT)
def test_a_target_that_is_not_there_gives_status_2_and_one_line(tmp_path, what, command):
    package(tmp_path)
    target, told = CANNOT[what]
    done = prepared.run("-m", "graphwidget", command, *target, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "graphwidget" in line]
    assert line.startswith("graphwidget: ") and told in line


@pytest.mark.parametrize(
    "ends, told",
    [
        ("os._exit(0)", "ended its process with status 0"),
        ("os.kill(os.getpid(), 9)", "signal 9, SIGKILL"),
    ],
)
def test_a_program_that_leaves_no_record_is_never_called_good(tmp_path, ends, told):
    file(tmp_path, f"import os\n{ends}\n", "ends.py")
    done = python(tmp_path, "-m", "graphwidget", "explain", "--no-try", "ends.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_ends_explain_ends_the_program(tmp_path, number):
    file(tmp_path, "import os, time\nprint('ready', os.getpid(), flush=True)\ntime.sleep(1000)\n", "waits.py")
    process = subprocess.Popen(
        [sys.executable, "-m", "graphwidget", "explain", "--no-try", "waits.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # a background job ignores SIGINT and hands that on
    )
    line = process.stderr.readline()
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (2 if number == signal.SIGINT else 128 + number)
    with pytest.raises(ProcessLookupError):
        os.kill(int(line.split()[1]), 0)
