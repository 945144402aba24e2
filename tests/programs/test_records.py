"""`graphwidget run -o` and `GRAPHWIDGET_RECORD`: however a program ends, its result is its own and its record can be read."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import prepared
import pytest
from test_cli import file

import graphwidget

LOOP = """
import os, signal, sys, time
import torch

w = torch.ones(3, requires_grad=True)
for i in range(40):
    (w * w).sum().backward()
print("ran")
"""
TWICE = "y = w.exp().sum()\ny.backward()\ny.backward()\n"


def python(folder, *command, **options):
    """In an interpreter that has just started: for how it ends, what it hands on, and what it finds in its environment."""
    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=240, env=environment, **options
    )


def run(folder, *command, **options):
    return python(folder, "-m", "graphwidget", "run", *command, **options)


def run_prepared(folder, *command):
    return prepared.run("-m", "graphwidget", "run", *command, cwd=folder)


def said(done):
    """Our own lines on standard error."""
    return [line for line in done.stderr.splitlines() if line.startswith("graphwidget: ")]


ENDS = {
    "at its end": "",
    "a status": "sys.exit(5)\n",
    "a call that raises": TWICE,
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)\n",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM)\n",
    # Under a shell's background job a process ignores Ctrl+C.
    "SIGINT": "signal.signal(signal.SIGINT, signal.default_int_handler)\nsignal.raise_signal(signal.SIGINT)\n",
    "os._exit": "sys.stdout.flush()\nos._exit(7)\n",
}


@pytest.mark.parametrize("how", ENDS)
def test_a_record_holds_every_call_however_the_program_ends(tmp_path, how):
    file(tmp_path, LOOP + ENDS[how], "loop.py")
    plain, ours = python(tmp_path, "loop.py"), run(tmp_path, "-o", "run.gwz", "loop.py")
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    record = graphwidget.load(tmp_path / "run.gwz")
    at_once = how in ("SIGKILL", "SIGTERM", "os._exit")
    assert len(record.calls) == 40 + 2 * (how == "a call that raises")
    assert record.complete == (not at_once)
    assert {call.place.file for call in record.calls} == {"loop.py"}
    if how == "a call that raises":
        assert [finding.kind for finding in record.findings()] == ["second_backward"]
        assert (record.exit, [error.type for error in record.errors]) == (1, ["RuntimeError"])
    if not at_once:
        (line,) = said(ours)
        assert f"{len(record.calls)} backward calls" in line and "Record: run.gwz." in line
    document = prepared.run("-m", "graphwidget", "explain", "--format", "json", "run.gwz", cwd=tmp_path)
    assert len(json.loads(document.stdout)["calls"]) == len(record.calls)
    assert document.returncode == (how in ("a call that raises", "a status", "SIGINT"))


def test_a_process_that_is_killed_while_it_trains_leaves_what_was_recorded(tmp_path):
    file(tmp_path, LOOP.replace("range(40)", "range(10**9)"), "loop.py")
    with subprocess.Popen(
        [sys.executable, "-m", "graphwidget", "run", "-o", "run.gwz", "loop.py"], cwd=tmp_path
    ) as process:
        path = tmp_path / "run.gwz"
        until = time.monotonic() + 120
        while time.monotonic() < until and not (path.exists() and path.stat().st_size > 30_000):
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    record = graphwidget.load(path)
    assert len(record.calls) > 100 and not record.complete
    assert "end is not in it" in record.explain()


PROCESSES = """
import sys
import torch
import torch.multiprocessing

def work(number):
    w = torch.ones(3, requires_grad=True)
    for i in range(4):
        (w * w).sum().backward()
    if number:
        y = w.exp().sum()
        y.backward()
        y.backward()

if __name__ == "__main__":
    context = torch.multiprocessing.get_context(sys.argv[1])
    children = [context.Process(target=work, args=(number,)) for number in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    print([child.exitcode for child in children])
"""


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_each_process_that_a_program_starts_has_a_record(tmp_path, method):
    file(tmp_path, PROCESSES, "many.py")
    asked = method == "fork"  # by the environment, which starts a tracker in other processes
    where, env = ([], {"GRAPHWIDGET_RECORD": "many.gwz"}) if asked else (["-o", "many.gwz"], {})
    done = run(tmp_path, *where, "many.py", method, env=env)
    assert (done.returncode, done.stdout) == (0, "[0, 1]\n")
    records = [graphwidget.load(path) for path in tmp_path.glob("*.gwz")]
    assert sorted(len(record.calls) for record in records) == [4, 6]
    assert sorted([finding.kind for finding in record.findings()] for record in records) == [[], ["second_backward"]]
    assert all(record.complete for record in records)
    (found,) = [finding for record in records for finding in record.findings()]
    assert (found.cause.file, found.cause.source) == ("many.py", "y = w.exp().sum()")
    assert {path.name for path in tmp_path.glob("*.gwz")} == {f"many-{record.about.pid}.gwz" for record in records}
    assert sorted(re.findall(r"process (\d+): (No|1) finding", "\n".join(said(done)))) == sorted(
        (str(record.about.pid), "1" if record.findings() else "No") for record in records
    )


RANKS = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(3, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
if dist.get_rank() == 1:
    y = torch.ones(3, requires_grad=True).exp().sum()
    y.backward()
    try:
        y.backward()
    except RuntimeError:
        pass
dist.destroy_process_group()
"""


@pytest.mark.parametrize("wanted", ["-o", "the environment", "nothing"])
def test_each_rank_of_torchrun_tells_its_own_story(tmp_path, wanted):
    file(tmp_path, RANKS, "train.py")
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "train.py"]
    options = {
        "-o": (["-o", "out/job.gwz", *launch], {}, "out/job"),
        "the environment": (launch, {"env": {"GRAPHWIDGET_RECORD": "out"}}, "out/train"),
        "nothing": (launch, {}, "train"),
    }
    (tmp_path / "out").mkdir()
    command, more, stem = options[wanted]
    done = run(tmp_path, *command, **more)
    assert done.returncode == 0, done.stderr
    found = {graphwidget.load(path).about.rank: path for path in tmp_path.rglob("*.gwz")}
    assert sorted(found) == [0, 1] and len(list(tmp_path.rglob("*.gwz"))) == 2
    first, second = graphwidget.load(found[0]), graphwidget.load(found[1])
    assert str(found[1].relative_to(tmp_path)) == f"{stem}-rank1-{second.about.pid}.gwz"
    assert (len(first.calls), first.findings()) == (5, ())
    assert len(second.calls) == 7 and [finding.kind for finding in second.findings()] == ["second_backward"]
    assert "A record of rank 1 of 2" in second.explain() and "train.py:" in second.explain()
    assert [line.partition(": ")[2][:13] for line in said(done)] == ["rank 0 of 2: ", "rank 1 of 2: "]


def test_the_environment_starts_a_record_in_a_process_that_imports_graphwidget(tmp_path):
    file(tmp_path, "import graphwidget, os\nos.chdir('/')\n" + LOOP + TWICE, "train.py")
    file(tmp_path, LOOP, "other.py")
    file(tmp_path, "import graphwidget, torch\nprint(torch.ones(2))\n", "idle.py")
    for name in ("train.py", "other.py", "idle.py"):
        done = python(tmp_path, name, env={"GRAPHWIDGET_RECORD": "records"})
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "records").iterdir()
    record = graphwidget.load(path)
    assert path.name == f"train-{record.about.pid}.gwz"
    assert len(record.calls) == 42 and record.errors and record.findings()[0].cause.line == record.errors[0].line - 2


def test_the_users_own_sitecustomize_still_runs_and_nothing_of_ours_is_on_the_path(tmp_path):
    file(tmp_path, "print('their own')\n", "sitecustomize.py")
    file(
        tmp_path,
        "import subprocess, sys\n"
        "code = 'import sys, sitecustomize; print(sitecustomize.__file__, [p for p in sys.path if \"hook\" in p])'\n"
        "subprocess.run([sys.executable, '-c', code])\n",
        "start.py",
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = run(tmp_path, "start.py", env={"PYTHONPATH": path})
    assert done.stdout.splitlines()[-2:] == ["their own", f"{tmp_path / 'sitecustomize.py'} []"], done.stderr


@pytest.mark.parametrize("output", ["missing/run.gwz", ".", "text.gwz", "/dev/null"])
def test_where_no_record_can_be_written_the_program_runs_and_is_told(tmp_path, output):
    file(tmp_path, LOOP + "sys.exit(5)\n", "loop.py")
    file(tmp_path, "hello\n", "text.gwz")
    done = run_prepared(tmp_path, "-o", output, "loop.py")
    assert (done.returncode, done.stdout) == (5, "ran\n")
    assert (tmp_path / "text.gwz").read_text() == "hello\n"
    if output == "text.gwz":
        assert "is in use, or no record: the record is" in said(done)[0]
        assert len(graphwidget.load(tmp_path / "text-2.gwz").calls) == 40
    else:
        assert "no record is written" in said(done)[0] and "The program goes on." in said(done)[0]
        assert "Record:" not in said(done)[1]


def test_a_folder_that_cannot_be_made_stops_no_program(tmp_path):
    file(tmp_path, "import graphwidget\n" + LOOP, "loop.py")
    file(tmp_path, "", "in_the_way")
    for command in (["loop.py"], ["-m", "graphwidget", "run", "loop.py"]):
        done = python(tmp_path, *command, env={"GRAPHWIDGET_RECORD": "in_the_way/records"})
        assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
        assert "no record is written" in said(done)[0] and "Traceback" not in done.stderr


def test_a_full_disk_ends_the_record_and_not_the_program(tmp_path):
    file(tmp_path, LOOP.replace("range(40)", "range(2000)"), "loop.py")
    limit = 20_000
    done = run(
        tmp_path,
        *("-o", "run.gwz", "loop.py"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "ends here" in said(done)[0] and "2000 backward calls" in said(done)[1]
    assert 10 < len(graphwidget.load(tmp_path / "run.gwz").calls) < 2000


def test_two_runs_into_one_file_lose_nothing(tmp_path):
    file(tmp_path, LOOP + "w.sum().backward()\nPath = __import__('pathlib').Path\n", "first.py")
    file(tmp_path, LOOP, "second.py")
    assert "Record: run.gwz." in run_prepared(tmp_path, "-o", "run.gwz", "first.py").stderr
    again = run_prepared(tmp_path, "-o", "run.gwz", "second.py")
    assert "the earlier record" in said(again)[0] and "is now run-2.gwz" in said(again)[0]
    assert [len(graphwidget.load(tmp_path / name).calls) for name in ("run.gwz", "run-2.gwz")] == [40, 41]
    # A record that is being written keeps its name.
    with graphwidget.track(record=tmp_path / "held.gwz"):
        at_once = run_prepared(tmp_path, "-o", "held.gwz", "second.py")
    assert "held-2.gwz" in said(at_once)[-1]
    assert len(graphwidget.load(tmp_path / "held-2.gwz").calls) == 40
    assert Path(graphwidget.load(tmp_path / "held.gwz").path).exists()


@pytest.mark.parametrize("bound", ["0", "much", "nan"])
def test_a_wrong_bound_is_refused_before_anything_runs(tmp_path, bound):
    file(tmp_path, LOOP, "loop.py")
    done = run(tmp_path, "--max-mb", bound, "-o", "run.gwz", "loop.py")
    assert (done.returncode, done.stdout) == (2, "") and "--max-mb" in done.stderr
