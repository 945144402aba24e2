"""The command line on good and on bad files: status, standard output, standard error."""

import json
import os
import signal
import subprocess
import sys

import prepared
import pytest

from graphwidget import cli

TWICE = (
    "# %%\nimport torch\nw = torch.ones(2, requires_grad=True)\ny = w.exp().sum()\ny.backward()\n# %%\ny.backward()\n"
)


COMMAND = ("-m", "graphwidget", "explain", "--no-try")


def explain(path, *options):
    return prepared.run(*COMMAND, *options, path, timeout=120)


def explain_anew(path, *options):
    """In an interpreter that has just started: for what depends on how Python starts, or starts Python."""
    command = [sys.executable, *COMMAND, *options, str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def file(folder, text, name="program.py"):
    path = folder / name
    path.write_bytes(text) if isinstance(text, bytes) else path.write_text(text)
    return path


def notebook(*cells, language="python"):
    made = [{"cell_type": "code", "source": c, "metadata": {}, "outputs": [], "execution_count": None} for c in cells]
    metadata = {"kernelspec": {"name": "k", "display_name": "k", "language": language}}
    return json.dumps({"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4})


BAD = {
    "missing.py": (None, "No such file"),
    "broken.ipynb": ("{not json", "not JSON"),
    "list.ipynb": ("[1, 2]", "not a readable notebook"),
    "cells.ipynb": ('{"cells": 3, "nbformat": 4, "nbformat_minor": 4, "metadata": {}}', "not a readable notebook"),
    "empty.ipynb": ("", "not JSON"),
    "empty.py": ("", "no code cell"),
    "binary.py": (b"\xff\xfe\x00\x81", "not UTF-8"),
    "julia.ipynb": (notebook("x = 1", language="julia"), "its language is julia"),
    "notes.txt": ("hello", "expected a notebook"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_run_gives_status_2_and_one_line_that_names_it(tmp_path, capsys, name):
    text, told = BAD[name]
    path = tmp_path / name
    if text is not None:
        file(tmp_path, text, name)
    assert cli.main(["explain", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert told in err and name in err and len(err.splitlines()) == 1


def test_a_directory_is_refused(tmp_path, capsys):
    assert cli.main(["explain", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


@pytest.mark.parametrize("order", ["1,9", "a,b", ",", "0"])
def test_an_order_that_names_no_cell_is_refused(tmp_path, capsys, order):
    assert cli.main(["explain", "--order", order, str(file(tmp_path, TWICE))]) == 2
    assert "--order" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--colour"], ["--timeout", "soon"], ["--timeout", "-1"], ["--format", "pdf"]])
def test_unknown_options_and_values_are_refused_with_the_usage(tmp_path, capsys, options):
    with pytest.raises(SystemExit) as refused:
        cli.main(["explain", *options, str(file(tmp_path, TWICE))])
    assert refused.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_options_may_follow_a_program_with_cells_and_the_rest_is_its_own(tmp_path):
    path = file(tmp_path, "# %%\nimport sys\nprint(sys.argv[1:])\n")
    done = prepared.run(*COMMAND, path, "--format", "json", "--lr", "0.1")
    assert json.loads(done.stdout)["argv"] == ["--lr", "0.1"] and "['--lr', '0.1']" in done.stderr


def test_a_finding_of_severity_error_gives_status_1_and_a_readable_text(tmp_path):
    done = explain(file(tmp_path, TWICE))
    assert done.returncode == 1, done.stderr
    assert "② needs saved tensors that ① freed." in done.stdout
    assert "In[2], line 1 raised RuntimeError" in done.stdout


def test_without_a_finding_the_last_line_says_what_was_looked_at_and_the_status_is_0(tmp_path):
    done = explain(file(tmp_path, TWICE.replace("# %%\ny.backward()\n", "")))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "No finding. 1 backward call, which ran."


def test_json_is_alone_on_standard_output_whatever_the_cells_print(tmp_path):
    noisy = (
        "# %%\nimport os, subprocess\nprint('from print')\nos.write(1, b'from C\\n')\n"
        "subprocess.run(['echo', 'from a child'])\n!echo from a shell\nname = 'é ①'\n" + TWICE
    )
    done = subprocess.run(
        [sys.executable, "-m", "graphwidget", "explain", "--no-try", "--format", "json", str(file(tmp_path, noisy))],
        capture_output=True,
        timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    document = json.loads(done.stdout.decode())
    assert document["schema"] == 2 and [call["n"] for call in document["calls"]] == [1, 2]
    assert document["calls"][1]["freed_by"]["n"] == 1 and document["findings"][0]["call"] == 2
    for text in (b"from print", b"from C", b"from a child", b"from a shell"):
        assert text in done.stderr
    assert b"cell/s" not in done.stderr  # no progress bar: not a terminal


def test_an_order_may_run_cells_again(tmp_path):
    done = explain(file(tmp_path, TWICE), "--order", "1,2,1,2", "--format", "json")
    document = json.loads(done.stdout)
    assert [(e["step"], e["cell"]) for e in document["errors"]] == [(2, 2), (4, 2)]


@pytest.mark.parametrize(
    "endless",
    [
        "while True: pass",
        "import time\ntime.sleep(1000)",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    ],
    ids=["python", "sleep", "catches everything"],
)
def test_an_endless_cell_is_stopped_by_the_timeout(tmp_path, endless):
    done = explain(file(tmp_path, f"# %%\n{endless}\n"), "--timeout", "1")
    assert done.returncode == 2
    assert "cell 1 ran longer than 1 s" in done.stderr


def test_a_call_into_c_that_never_returns_is_stopped_too(tmp_path):
    block = "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})"
    stuck = f"# %%\nimport threading, signal\n{block}\nthreading.Event().wait()\n"
    done = explain(file(tmp_path, stuck), "--timeout", "1")
    assert done.returncode == 2
    assert "cannot be interrupted" in done.stderr


def test_ctrl_c_ends_the_run(tmp_path):
    # Many short sleeps: Python itself can miss a signal that comes just before a long one begins.
    waiting = "for _ in range(6000):\n    time.sleep(0.01)\n"
    path = file(tmp_path, f"# %%\nimport time\nprint('ready', flush=True)\n{waiting}# %%\n{waiting}")
    process = subprocess.Popen(
        [sys.executable, "-m", "graphwidget", "explain", "--no-try", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while "ready" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "interrupted in cell 1" in err


RAISES = {
    "an error of another kind": "raise ValueError('no')",
    "a cell that is no Python": "print(",
    "an interrupt inside": "raise KeyboardInterrupt",
    "an exit with a status": "import sys\nsys.exit(3)",
    "an exit with a message": "raise SystemExit('no data')",
    "a missing module": "import no_such_module_anywhere",
}


@pytest.mark.parametrize("ends", RAISES)
def test_a_program_that_raised_never_gives_0(tmp_path, ends):
    done = explain(file(tmp_path, "x = 1\n# %%\n" + RAISES[ends]))
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    how = "Ended by SystemExit: " if "an exit" in ends else "Raised outside of any backward call: "
    if ends == "an interrupt inside":
        how = "Stopped by KeyboardInterrupt"
    assert last.startswith(f"No finding. No backward call was recorded. {how}")
    assert "In[2]" in last


@pytest.mark.parametrize("ends", ["import sys\nsys.exit()", "raise SystemExit(0)", "exit()\n# %%\nraise ValueError"])
def test_a_program_that_ends_itself_well_gives_0(tmp_path, ends):
    done = explain(file(tmp_path, "x = 1\n# %%\n" + ends))
    assert done.returncode == 0, done.stderr


def test_an_autograd_error_that_has_no_finding_is_shown_whole_and_called_unexplained(tmp_path):
    cells = (  # the index is changed where PyTorch cannot see it
        "# %%\nimport numpy as np\nimport torch\na, at = torch.ones(3, requires_grad=True), np.array([0])\n"
        "u = a.gather(0, torch.from_numpy(at))\nat[0] = 9\n"
    )
    path = file(tmp_path, f"{cells}# %%\nu.sum().backward()\n")
    done = explain(path)
    assert done.returncode == 1
    words = " ".join(done.stdout.split())
    assert "`u.sum().backward()` raised RuntimeError, which is not explained yet." in words
    assert "`GatherBackward0`" in words
    assert "1 error is not explained yet." in done.stdout
    document = json.loads(explain(path, "--format", "json").stdout)
    (error,) = document["unexplained"]
    message = error.pop("message")
    assert error == {"call": 1, "cell": 2, "line": 1, "type": "RuntimeError"}
    assert "out of bounds" in message and message.strip() in words
    assert document["summary"] in done.stdout.splitlines()
    assert message.split()[-1] in explain(path, "--format", "html").stdout


@pytest.mark.parametrize("cells", [True, False])
@pytest.mark.parametrize("format_, first", [("svg", "<svg"), ("dot", "digraph"), ("html", "<!doctype")])
def test_the_last_graph_can_be_written_as_a_picture(tmp_path, format_, first, cells):
    program = TWICE if cells else "".join(line for line in TWICE.splitlines(True) if not line.startswith("# %%"))
    done = explain(file(tmp_path, program), "--no-try", "--format", format_)
    assert done.stdout.startswith(first) and "ExpBackward" in done.stdout


def test_the_program_sees_its_own_name_and_folder_as_under_python(tmp_path):
    shows = "import sys\nprint([__name__, __file__, *sys.argv, sys.path[0]])\n"
    path = file(tmp_path, shows)
    plain = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    done = explain_anew(path)
    assert done.returncode == 0 and plain.stdout.strip() in done.stderr
    magic = explain_anew(file(tmp_path, shows + "# %%\n%time x = 1\n"))
    assert magic.returncode == 0 and plain.stdout.strip() in magic.stderr


def test_the_folder_of_graphwidget_itself_is_not_where_the_program_imports_from(tmp_path):
    beside = tmp_path / "beside"
    beside.mkdir()
    file(beside, "", "module_beside_the_caller.py")
    path = file(tmp_path, "import module_beside_the_caller\n")
    done = subprocess.run(
        [sys.executable, "-m", "graphwidget", "explain", "--no-try", str(path)],
        capture_output=True,
        text=True,
        cwd=beside,
    )
    assert done.returncode == 1 and "ModuleNotFoundError" in done.stdout


def test_worker_processes_find_the_functions_of_the_program(tmp_path):
    program = (
        "import multiprocessing\ndef double(x):\n    return 2 * x\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        print('doubled', pool.map(double, [21]))\n"
    )
    done = explain_anew(file(tmp_path, program))
    assert done.returncode == 0 and "doubled [42]" in done.stderr


BROKEN = {
    "raises": "raise OSError('libtorch_cpu.so: cannot open shared object file')",
    "is another module": "x = 1",
}


@pytest.mark.parametrize("name", ["program.py", "program.ipynb"])
@pytest.mark.parametrize("how", BROKEN)
def test_a_torch_that_cannot_be_imported_gives_status_2_and_one_line(tmp_path, how, name):
    fake = tmp_path / "fake"
    fake.mkdir()
    file(fake, BROKEN[how], "torch.py")
    path = file(tmp_path, notebook("import torch") if name.endswith("ipynb") else TWICE, name)
    root = os.path.dirname(os.path.dirname(cli.__file__))
    done = subprocess.run(
        [sys.executable, "-m", "graphwidget", "explain", "--no-try", str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(fake), root])},
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "torch" in line and ("libtorch_cpu.so" in line) == (how == "raises")
