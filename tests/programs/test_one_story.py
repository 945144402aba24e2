"""One package, run in every way there is: the same cause, the same names and the same edit."""

import json
import subprocess
import sys
import textwrap

import prepared
import pytest
from test_cli import file

MODEL = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.state = nn.GRUCell(2, 3), None

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state


def fit(steps=3):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        loss = net(torch.ones(4, 2)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
TELLS = """
import json, sys, threading
import graphwidget as gw
from net import fit

def tell(tracker, name="told.json"):
    (found,) = [one for one in tracker.findings() if one.severity == "error"]
    edits = [[edit.file, edit.start[0], edit.new] for edit in found.fixes[0].edits]
    with open(name, "w") as out:
        json.dump([found.cause.file, found.cause.line, list(found.names), edits], out)
"""
TORCHRUN = ["-m", "torch.distributed.run", "--standalone"]
WITHIN = {
    "track": TELLS + "with gw.track() as tracker:\n    try:\n        fit()\n    except RuntimeError:\n        pass\ntell(tracker)\n",
    "thread": TELLS + "threading.excepthook = lambda _: None\nwith gw.track() as tracker:\n    worker = threading.Thread(target=fit)\n    worker.start()\n    worker.join()\ntell(tracker)\n",
    "pytest": TELLS + "def test_it():\n    with gw.track() as tracker:\n        try:\n            fit()\n        except RuntimeError:\n            pass\n    tell(tracker)\n",
    # Two processes: what one of them says is compared, that of the other has to be the same.
    "torchrun": TELLS + "import os\nrank = os.environ['RANK']\nos.makedirs(rank)\nwith gw.track() as tracker:\n    try:\n        fit()\n    except RuntimeError:\n        pass\ntell(tracker, f'{rank}/told.json')\n",
}  # fmt: skip
NOTEBOOK = {
    "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": text, "id": text[:4]}
              for text in ("from net import fit", "fit()")],
    "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
}  # fmt: skip


def python(folder, *command):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=folder, timeout=400)


def told(folder, how):
    if how in WITHIN:
        file(folder, WITHIN[how], "test_within.py")
        launched = {"pytest": ["-m", "pytest", "-q"], "torchrun": [*TORCHRUN, "--nproc-per-node", "2"]}
        done = python(folder, *launched.get(how, []), "test_within.py")
        assert done.returncode == 0, done.stdout + done.stderr
        one, *others = [json.loads(path.read_text()) for path in sorted(folder.rglob("told.json"))]
        assert len(others) == (how == "torchrun") and all(other == one for other in others)
        return one
    names = {"script": "run.py", "notebook": "run.ipynb", "cells": "cells.py"}
    done = prepared.run("-m", "graphwidget", "explain", "--no-try", "--format", "json", names[how], cwd=folder)
    (found,) = [one for one in json.loads(done.stdout)["findings"] if one["severity"] == "error"]
    edits = [[edit["file"], edit["start"][0], edit["new"]] for edit in found["fixes"][0]["edits"]]
    return [found["cause"]["file"], found["cause"]["line"], found["names"], edits]


@pytest.mark.parametrize("how", ["notebook", "cells", "script", "track", "thread", "pytest", "torchrun"])
def test_a_package_has_one_story(tmp_path, how):
    file(tmp_path, textwrap.dedent(MODEL).lstrip(), "net.py")
    file(tmp_path, "from net import fit\nfit()\n", "run.py")
    file(tmp_path, "# %%\nfrom net import fit\n# %%\nfit()\n", "cells.py")
    file(tmp_path, json.dumps(NOTEBOOK), "run.ipynb")
    cut = "\n        net.state = net.state.detach()"
    assert told(tmp_path, how) == ["net.py", 11, ["net.state"], [["net.py", 22, cut]]]
