"""`graphwidget explain --try`: fixes are run, and those that help stand first."""

import json
import os
import textwrap

import prepared
import pytest

STATE = """
import torch
from torch import nn
torch.manual_seed(0)
cell, head = nn.RNNCell(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(2, 4)
for step in range(20):
    h = cell(torch.randn(2, 3), h)
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
ENCODER = """
import torch
from torch import nn
torch.manual_seed(0)
enc, head = nn.Linear(3, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.1)
z = enc(torch.ones(2, 3))
for step in range(20):
    loss = (head(z) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TWICE = """
import sys
import torch
w = torch.ones(3, requires_grad=True)
y = w.exp()
y.sum().backward()
(y * 2).sum().backward()
"""
INPLACE = """
import torch
from torch import nn
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(9):
    z = net(torch.randn(2, 3)).sigmoid()
    z *= 2
    opt.zero_grad()
    z.sum().backward()
    opt.step()
"""
NO_GRAPH = """
import torch
from torch import nn
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(9):
    with torch.no_grad():
        z = net(torch.randn(2, 3)).sigmoid()
    opt.zero_grad()
    z.sum().backward()
    opt.step()
"""
LEAK = """
import torch
from torch import nn
net = nn.Linear(3, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for step in range(60):
    loss = net(torch.randn(2, 3)).sigmoid().sum()
    total += loss
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def explain(folder, *command, form="json"):
    environment = {**os.environ, "TMPDIR": str(temporary(folder))}
    return prepared.run("-m", "graphwidget", "explain", "--format", form, *command, cwd=folder, env=environment)


def temporary(folder):
    """A folder for temporary files that is not the one around the test's own."""
    made = folder.parent / f"{folder.name}-tmp"
    made.mkdir(exist_ok=True)
    return made


def fixes(folder, *command):
    """The fixes after trials, which have time enough on a machine that does much else."""
    asked = [] if "--try-seconds" in command else ["--try", "--try-seconds", "120"]
    done = explain(folder, *asked, *command)
    assert done.stdout, done.stderr
    return [fix for finding in json.loads(done.stdout)["findings"] for fix in finding["fixes"]]


@pytest.mark.parametrize("text", [STATE, INPLACE, NO_GRAPH], ids=["state", "inplace", "no graph"])
def test_a_fix_that_helps_is_verified_because_it_ran(tmp_path, text):
    write(tmp_path, "train.py", text)
    first = fixes(tmp_path, "train.py")[0]
    assert (first["status"], first["verified"], first["tried"]["ok"]) == ("tried", True, True)
    assert first["tried"]["passes"] == 3 and first["tried"]["why"].startswith("ran 3 further passes in ")
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
    assert all(path.name.startswith("torchinductor") for path in temporary(tmp_path).iterdir())  # torch's own


DETACHED = """
import torch
from torch import nn
class Agent:
    def __init__(self):
        self.local, self.target = nn.Linear(3, 2), nn.Linear(3, 2)
        for p in self.target.parameters():
            p.requires_grad = False
        self.scale = nn.Parameter(torch.tensor(1.5))
        self.opt = torch.optim.SGD([self.scale, *self.local.parameters()], lr=0.1)
    def train(self, x):
        wanted = 1 + 0.9 * self.target(x).max(1).values
        given = self.scale.item() * self.local(x).detach().mean(1)
        loss = (given - wanted).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
agent = Agent()
for _ in range(4):
    agent.train(torch.randn(5, 3))
"""


def test_the_line_that_left_the_graph_is_measured(tmp_path):
    """The text shows a frozen target first. What the optimizer trains left the graph in two ways, found one by one."""
    write(tmp_path, "train.py", DETACHED)
    (finding,) = json.loads(explain(tmp_path, "--try", "--try-seconds", "120", "train.py").stdout)["findings"]
    (fix,) = finding["fixes"]
    assert finding["cause"]["line"] == 13 and (fix["status"], fix["verified"]) == ("tried", True)
    assert "+ given = self.scale * self.local(x).mean(1)" in fix["edit"]


NO_LEAVES = """
import torch
torch.manual_seed(0)
w = torch.randn(3, 1, requires_grad=True).double()
b = torch.zeros(1, requires_grad=True).double()
x = torch.randn(5, 3).double()
for step in range(4):
    loss = (x @ w + b - 1).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
"""


def test_faults_that_show_one_behind_the_other_are_mended_together(tmp_path):
    """Two tensors that are no leaves; and what clears no gradients, which only shows when the steps run."""
    write(tmp_path, "train.py", NO_LEAVES)
    first = fixes(tmp_path, "train.py")[0]
    assert first["verified"] and "`b.grad` is None." in first["text"] and "Gradients add up" in first["text"]
    for line in ("+ b = torch.zeros(1).double().requires_grad_()", "+ w.grad = None"):
        assert line in (" ".join(one.split()) for one in first["edit"])


def test_a_pile_is_tried_to_the_end_of_the_program(tmp_path):
    write(tmp_path, "train.py", LEAK)
    first = fixes(tmp_path, "train.py")[0]
    assert first["tried"]["ok"] and first["tried"]["why"].startswith("ran to its end in ")


def test_a_fix_that_stops_training_is_not_offered_beside_one_that_trains(tmp_path):
    write(tmp_path, "train.py", ENCODER)
    (good,) = fixes(tmp_path, "train.py")
    assert (good["id"], good["tried"]["ok"]) == ("recompute_in_loop", True)


GOES_ON = "ran past the place, and was stopped after "
PAST = "it gets past this error, then the program"
CHILDREN = {
    "a hang": ("while True: pass", True, GOES_ON),
    "output without end": ("while True: print('x' * 100_000)", False, "it printed more than 16 MB, and was stopped"),
    "processes without end": (
        "import os, time\nfor _ in range(200):\n    os.fork() or time.sleep(60)\ntime.sleep(60)",
        False,
        "it started more than 64 processes, and was stopped",
    ),
    "memory": ("keep = []\nwhile True: keep.append(torch.ones(9_000_000))", False, "it took more than "),
    "input": ("input()", None, "it reads from standard input, and a trial has none"),
    "an end of its own": ("import os; os._exit(7)", None, "its process ended with status 7 and left no account"),
    "an error later": ("1 / 0", False, f"{PAST} raised ZeroDivisionError: division by zero (train.py:8)"),
}


@pytest.mark.parametrize("what", CHILDREN)
def test_what_a_program_does_behind_the_error_is_limited_and_said(tmp_path, what):
    code, ok, why = CHILDREN[what]
    write(tmp_path, "train.py", TWICE + code)
    found = fixes(tmp_path, "--try", "--try-seconds", "8", "train.py")
    first = next(fix for fix in found if fix["id"] == "retain_graph_earlier_call")
    assert (first["tried"]["ok"], first["status"]) == (ok, "simulated" if ok is None else "tried")
    assert first["tried"]["why"].startswith(why)


def test_the_program_gets_its_arguments_again(tmp_path):
    write(tmp_path, "train.py", TWICE + "assert sys.argv[1:] == ['--steps', '3']\n")
    assert fixes(tmp_path, "train.py", "--steps", "3")[0]["tried"]["ok"]


def test_a_package_of_several_files_is_edited_where_the_fault_is(tmp_path):
    write(
        tmp_path,
        "pkg/model.py",
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(3, 3)
                self.h = torch.zeros(2, 3)

            def forward(self, x):
                self.h = torch.tanh(self.lin(x) + self.h)
                return self.h
        """,
    )
    write(tmp_path, "pkg/__init__.py", "")
    write(
        tmp_path,
        "pkg/train.py",
        """
        import torch
        from .model import Net

        net = Net()
        opt = torch.optim.Adam(net.parameters())
        for _ in range(9):
            opt.zero_grad()
            net(torch.randn(2, 3)).pow(2).mean().backward()
            opt.step()
        """,
    )
    model = (tmp_path / "pkg/model.py").read_text()
    first = fixes(tmp_path, "-m", "pkg.train")[0]
    assert first["tried"]["ok"] and {edit["file"] for edit in first["edits"]} <= {"pkg/model.py", "pkg/train.py"}
    assert (tmp_path / "pkg/model.py").read_text() == model


def test_code_that_a_program_reads_and_executes_is_edited(tmp_path):
    write(tmp_path, "inner.py", STATE)
    write(tmp_path, "outer.py", "exec(compile(open('inner.py').read(), 'inner.py', 'exec'))\n")
    assert fixes(tmp_path, "outer.py")[0]["tried"]["ok"]


CELLS = f"# %%\n{STATE.split('h = torch')[0]}\n# %%\nh = torch{STATE.split('h = torch')[1]}"


def test_cells_are_edited_in_memory(tmp_path):
    write(tmp_path, "lesson.py", CELLS)
    assert fixes(tmp_path, "lesson.py")[0]["tried"]["passes"] == 3


def test_a_notebook_with_magics_is_tried_in_a_shell(tmp_path):
    cells = ["%matplotlib inline\n!true", *CELLS.split("# %%\n")[1:]]
    made = [{"cell_type": "code", "source": c, "metadata": {}, "outputs": [], "execution_count": None} for c in cells]
    metadata = {"kernelspec": {"name": "k", "display_name": "k", "language": "python"}}
    book = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "lesson.ipynb").write_text(json.dumps(book))
    assert fixes(tmp_path, "lesson.ipynb")[0]["tried"]["passes"] == 3


def test_a_program_that_starts_others_is_not_run_again_unless_that_is_wanted(tmp_path):
    acts = "import os\nopen('log.txt', 'a').write('ran ')\nos.system('true')\ny = w"
    write(tmp_path, "train.py", TWICE.replace("y = w", acts))
    done = " ".join(explain(tmp_path, "train.py", form="text").stdout.split())
    assert "the program writes files (log.txt) and starts other programs (true), and that would happen again." in done
    assert "graphwidget explain --try train.py" in done
    assert (tmp_path / "log.txt").read_text() == "ran "
    first = fixes(tmp_path, "train.py")[0]
    assert first["tried"]["ok"] and (tmp_path / "log.txt").read_text() == "ran ran "  # what the trial wrote is undone


def test_a_program_that_does_nothing_to_the_world_is_run_again_unasked(tmp_path):
    write(tmp_path, "train.py", TWICE)
    document = json.loads(explain(tmp_path, "--try-seconds", "120", "train.py").stdout)
    assert document["not_tried"] is None and document["findings"][0]["fixes"][0]["tried"]["ok"]


def test_no_try_runs_nothing_again(tmp_path):
    write(tmp_path, "train.py", TWICE)
    done = explain(tmp_path, "--no-try", "train.py")
    document = json.loads(done.stdout)
    assert document["not_tried"] == "No fix was tried (--no-try)."
    assert {fix["status"] for fix in document["findings"][0]["fixes"]} == {"simulated"}
    assert "graphwidget: trial" not in done.stderr


def test_the_patch_is_that_of_a_fix_that_passed(tmp_path):
    write(tmp_path, "train.py", TWICE)
    done = explain(tmp_path, "--diff", "train.py")
    assert "+y.sum().backward(retain_graph=True)" in done.stdout
