"""`graphwidget explain NOTEBOOK`: it runs as in Jupyter, in a real kernel, and the answer comes out whole."""

import json
import os
import signal
import subprocess
import sys

import pytest
from test_cli import explain_anew, file, notebook

IMPORTS = "import torch\nw = torch.ones(2, requires_grad=True)\n"


def run(folder, *cells, options=(), **kinds):
    path = file(folder, notebook(*cells, **kinds), "lecture.ipynb")
    return explain_anew(path, "--format", "json", *options)


def answered(done):
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def test_a_plotting_lecture_runs_to_its_end(tmp_path):
    file(tmp_path, "1\n2\n3\n", "data.txt")
    file(tmp_path, "def loss_of(w, x):\n    return (w * x).exp().sum()\n", "models.py")
    done = run(
        tmp_path,
        "%matplotlib inline\nimport torch\nimport matplotlib.pyplot as plt",
        "",
        "import models\nx = torch.tensor([float(line) for line in open('data.txt')])",
        "%config InlineBackend.figure_format = 'retina'\nlosses = []",
        "%%time\nw = torch.ones(3, requires_grad=True)\nfor step in range(25):\n    loss = models.loss_of(w, x)\n"
        "    loss.backward()\n    losses.append(loss.item())",
        "import asyncio\nawait asyncio.sleep(0.01)\nplt.plot(losses)\nplt.show()",
        "!echo from a shell line\n%pip --version",
        "%%bash\necho from a shell cell",
        "%%capture caught\nprint('caught')",
        "from ipywidgets import interact\n@interact(k=(0, 3))\ndef shown(k=1):\n    print('slider at', k)",
        "import threading\nthread = threading.Thread(target=lambda: print('from a thread'))\nthread.start()\nthread.join()",
        "assert caught.stdout == 'caught\\n'",
    )
    document = answered(done)
    assert document["errors"] == [] and done.returncode == 0
    assert document["summary"] == "No finding. 25 backward calls, all ran."
    assert {(call["cell"], call["line"]) for call in document["calls"]} == {(5, 5)}  # an empty cell counts in the file
    for text in ("<Figure size", "from a shell line", "from a shell cell", "from a thread", "Wall time"):
        assert text in done.stderr
    assert "caught" not in done.stderr


def test_nobody_answers_input_and_it_says_so(tmp_path):
    done = run(tmp_path, "name = input('who? ')", "from getpass import getpass\ngetpass()")
    assert done.returncode == 1
    for error, called in zip(answered(done)["errors"], ("input", "getpass"), strict=True):
        assert error["message"].startswith(f"`{called}()` was called, and nobody is there to answer")


def test_errors_magics_and_broken_cells_do_not_end_the_run(tmp_path):
    cells = [
        "import sys\nsys.exit(3)",
        "raise KeyboardInterrupt",
        "%%time\nx = 1",
        "import asyncio\nawait asyncio.sleep(0)\ny = 2",
        "def broken(:",
        "%no_such_magic",
        "await asyncio.sleep(0)\nraise KeyboardInterrupt",
        IMPORTS + "(w * x * y).sum().backward()",
    ]
    document = answered(done := run(tmp_path, *cells))
    assert done.returncode == 1
    assert [error["cell"] for error in document["errors"]] == [1, 2, 5, 6, 7]
    assert [error["step"] for error in document["errors"]] == [1, 2, 5, 6, 7]
    assert [call["result"] for call in document["calls"]] == ["ok"]


def test_an_error_that_the_author_expects_is_raised_all_the_same(tmp_path):
    twice = notebook(IMPORTS + "y = w.exp().sum()\ny.backward()", "y.backward()", "done = True")
    tagged = json.loads(twice)
    tagged["cells"][1]["metadata"]["tags"] = ["raises-exception"]
    done = explain_anew(file(tmp_path, json.dumps(tagged), "lecture.ipynb"), "--format", "json")
    document = answered(done)
    assert done.returncode == 1 and document["findings"][0]["kind"] == "second_backward"
    assert (document["findings"][0]["call"], document["findings"][0]["freed_by"]["n"]) == (2, 1)


def test_the_answer_does_not_depend_on_what_the_cells_did_to_python(tmp_path):
    file(tmp_path, "raise SystemError('not this one')", "report.py")
    done = run(
        tmp_path,
        IMPORTS + "before = set(globals())\ny = w.exp().sum()\ny.backward()",
        "import builtins, json, os, signal, sys\nsys.stdout = sys.stderr = open(os.devnull, 'w')\n"
        "builtins.print = None\nos.chdir('/')\n"
        "sys.path[:] = []\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\njson = sum = max = len = sorted = None",
        "new = {name for name in globals().keys() - before if not name.startswith('_')}\n"
        "assert new == {*'before y builtins json os signal sys sum max len sorted new'.split()} - {'new'}, new\n"
        "assert Out == {}",
    )
    document = answered(done)
    assert [error["message"] for error in document["errors"]] == []
    assert [call["n"] for call in document["calls"]] == [1]


def test_the_extension_may_be_loaded_again_or_unloaded(tmp_path):
    document = answered(run(tmp_path, "%load_ext graphwidget", IMPORTS + "w.sum().backward()", "%graphwidget text"))
    assert (len(document["calls"]), document["errors"]) == (1, [])
    document = answered(run(tmp_path, IMPORTS + "w.sum().backward()", "%load_ext graphwidget\n%unload_ext graphwidget"))
    assert (len(document["calls"]), document["errors"]) == (1, [])


def test_an_order_may_run_cells_again_and_exit_ends_the_program(tmp_path):
    cells = [IMPORTS + "y = w.exp().sum()", "y.backward()", "exit()", "raise ValueError"]
    done = run(tmp_path, *cells, options=["--order", "1,2,1,2,2,3,4"])
    document = answered(done)
    assert [(error["step"], error["cell"]) for error in document["errors"]] == [(5, 2)]
    assert [call["cell"] for call in document["calls"]] == [2, 2, 2]
    assert "exit() in cell 3 ended the program; not run: 4" in done.stderr


def test_a_kernel_that_dies_is_reported_with_what_ran_until_then(tmp_path):
    done = run(tmp_path, "x = 1", "raise ValueError", "import os\nos.kill(os.getpid(), 9)", "y = 1")
    assert (done.returncode, done.stdout) == (2, "")
    told = done.stderr.splitlines()[-1]
    assert "the kernel died in cell 3 (signal 9, SIGKILL" in told
    assert "2 cells ran, 1 of them raised" in told


@pytest.mark.parametrize(
    ("endless", "told"),
    [
        ("import time\ntime.sleep(1000)", "(--timeout)\n"),
        (
            "import signal, threading\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
            "threading.Event().wait()",
            "cannot be interrupted",
        ),
        ("import asyncio\nawait asyncio.sleep(1000)", "cannot be interrupted"),
    ],
)
def test_an_endless_cell_is_stopped_by_the_timeout(tmp_path, endless, told):
    done = run(tmp_path, "x = 1", endless, options=["--timeout", "2"])
    assert done.returncode == 2
    assert "cell 2 ran longer than 2 s (--timeout)" in done.stderr and told in done.stderr
    if told == "cannot be interrupted":
        assert done.stdout == ""
    else:
        assert [one["cell"] for one in json.loads(done.stdout)["errors"]] == [2]


def test_ctrl_c_ends_the_run_and_the_kernel(tmp_path):
    cell = "import os, sys, time\nprint('kernel', os.getpid(), flush=True)\ntime.sleep(1000)"
    path = file(tmp_path, notebook(cell), "lecture.ipynb")
    process = subprocess.Popen(
        [sys.executable, "-m", "graphwidget", "explain", "--no-try", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # The tests may run as a background job of a shell, which ignores the signal and hands that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not (line := process.stderr.readline()).startswith("kernel"):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "interrupted in cell 1" in err
    with pytest.raises(ProcessLookupError):
        os.kill(int(line.split()[1]), 0)


def test_without_ipykernel_it_says_what_to_install(tmp_path):
    file(tmp_path, "raise ImportError('No module named ipykernel_launcher')", "ipykernel_launcher.py")
    path = file(tmp_path, notebook("x = 1"), "lecture.ipynb")
    root = os.path.dirname(os.path.dirname(__import__("graphwidget").__file__))
    done = subprocess.run(
        [sys.executable, "-m", "graphwidget", "explain", "--no-try", str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), root])},
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install ipykernel" in done.stderr


def test_run_of_a_notebook_prints_where_its_cells_print_and_names_what_it_found(tmp_path):
    (tmp_path / "log_alone.py").write_text("def keep(store, loss):\n    store.append(loss)\n")
    loop = "for _ in range(6):\n    loss = w.exp().sum()\n    loss.backward()\n    keep(store, loss)\n"
    cells = ["import sys, torch\nfrom log_alone import keep\nw, store = torch.ones(3, requires_grad=True), []",
             loop + "print('kept', len(store))\nprint('aside', file=sys.stderr)", "len(store)"]  # fmt: skip
    done = _run_notebook(tmp_path, cells)
    assert (done.returncode, done.stdout) == (0, "kept 6\n6\n")
    assert "aside" in done.stderr
    assert "graphwidget: Graphs of 6 iterations pile up in `store`. (log_alone.py:2 in keep)" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("graphwidget: 1 finding. 6 backward calls, all ran.")


def test_run_of_a_notebook_ends_at_the_first_cell_that_raises_with_the_explanation(tmp_path):
    cells = [
        "import torch\nloss = torch.ones(2, requires_grad=True).exp().sum()",
        "loss.backward()\nloss.backward()",
        "print('on')",
    ]
    done = _run_notebook(tmp_path, cells)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.index("RuntimeError") < done.stderr.index("needs saved tensors that ① freed")
    assert _run_notebook(tmp_path, ["pass"], "--steps").returncode == 2


def _run_notebook(folder, cells, *arguments):
    path = file(folder, notebook(*cells), "lesson.ipynb")
    command = [sys.executable, "-m", "graphwidget", "run", str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=300)
