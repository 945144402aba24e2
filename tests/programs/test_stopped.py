"""A program that is stopped from outside is explained as far as it ran."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

ENDLESS = """import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [nn.Linear(4, 4)]
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        return self.out(self.blocks[0](x))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01)
steps = 0
while True:
    opt.zero_grad()
    net(torch.ones(2, 4)).pow(2).sum().backward()
    opt.step()
    steps += 1
    if steps == 20:
        print("ready", flush=True)
"""
OBSTINATE = """import time
print("ready", flush=True)
while True:
    try:
        time.sleep(0.01)
    except KeyboardInterrupt:
        print("no", flush=True)
"""
CELLS = f"# %%\n{ENDLESS}# %%\nprint('not run')\n"
ERROR_BEFORE = "import torch\nx = torch.ones(2, requires_grad=True)\ny = x.exp()\ny.add_(1)\ny.sum().backward()\n"


def explain(folder: Path, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "graphwidget", "explain", "--format", "json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        # A background job ignores SIGINT and hands that on. A new session: no terminal interrupts it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        start_new_session=True,
    )


def until(stream: IO[str] | None, word: str) -> None:
    assert stream is not None
    for line in stream:
        if word in line:
            return
    raise AssertionError(f"{word} was not printed")


def stopped(process: subprocess.Popen[str], said: str) -> dict:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 2 and said in err.splitlines()[-1]
    document = json.loads(out)
    assert "The program was stopped before its end. This is what it did until then." in document["notes"]
    return document


@pytest.mark.parametrize("name, text", [("train.py", ENDLESS), ("cells.py", CELLS)], ids=["script", "cells"])
def test_ctrl_c_explains_what_ran_and_tries_its_fix(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    process = explain(tmp_path, name)
    until(process.stderr, "ready")
    process.send_signal(signal.SIGINT)
    document = stopped(process, "interrupted")
    (finding,) = document["findings"]
    assert finding["names"] == ["net.blocks[0].weight", "net.blocks[0].bias"]
    tried = finding["fixes"][0]["tried"]
    assert tried["ok"], tried["why"]
    # A run that is a little faster has made a call more by then.
    assert "as far as the program had come" in tried["why"] or "further backward call" in tried["why"], tried["why"]
    assert document["unexplained"] == [] and [one["type"] for one in document["errors"]] == ["KeyboardInterrupt"]
    assert not any(call["line"] == 22 for call in document["calls"])  # the second cell has not run


def test_a_script_is_explained_when_its_time_is_up(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(ENDLESS)
    document = stopped(explain(tmp_path, "--no-try", "--timeout", "15", "train.py"), "ran longer than 15 s (--timeout)")
    assert [one["kind"] for one in document["findings"]] == ["silent"] and document["exit"] == 130


def test_a_notebook_is_explained_up_to_the_cell_that_was_stopped(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": one}
             for one in (ERROR_BEFORE, ENDLESS, "print('not run')")]  # fmt: skip
    document = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "lesson.ipynb").write_text(json.dumps(document))
    process = explain(tmp_path, "lesson.ipynb")
    until(process.stderr, "ready")
    process.send_signal(signal.SIGINT)
    found = stopped(process, "interrupted in cell 2")
    assert sorted(one["kind"] for one in found["findings"]) == ["inplace", "silent"]
    assert [(one["cell"], one["type"]) for one in found["errors"]] == [(1, "RuntimeError"), (2, "KeyboardInterrupt")]


def test_ctrl_c_in_a_trial_gives_the_answer_without_it(tmp_path: Path) -> None:
    waits = ENDLESS.replace("steps = 0\n", "steps = 0\nimport time\ntime.sleep(2.5)\n")
    (tmp_path / "train.py").write_text(waits)
    process = explain(tmp_path, "train.py")
    until(process.stderr, "ready")
    process.send_signal(signal.SIGINT)
    until(process.stderr, "trial 1")
    process.send_signal(signal.SIGINT)
    document = stopped(process, "interrupted")
    assert document["not_tried"] == "No fix was tried: that was interrupted."
    assert document["findings"][0]["fixes"][0]["status"] != "tried"


def test_a_program_that_goes_on_after_ctrl_c_is_ended_by_the_second_one(tmp_path: Path) -> None:
    (tmp_path / "goes_on.py").write_text(OBSTINATE)
    process = explain(tmp_path, "goes_on.py")
    until(process.stderr, "ready")
    process.send_signal(signal.SIGINT)
    until(process.stderr, "no")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "") and "goes_on.py: interrupted" in err


def test_a_program_that_cannot_be_interrupted_leaves_no_answer(tmp_path: Path) -> None:
    (tmp_path / "goes_on.py").write_text(OBSTINATE)
    out, err = (process := explain(tmp_path, "--timeout", "10", "goes_on.py")).communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "ran longer than 10 s (--timeout), in a call that cannot be interrupted" in err


def test_a_program_that_ends_in_order_after_ctrl_c_is_explained_too(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        ENDLESS.replace("while True:", "def train():\n  while True:").replace("\n    ", "\n      ")
        .replace("      steps += 1", "      global steps\n      steps += 1")
        + "try:\n    train()\nexcept KeyboardInterrupt:\n    print('early end')\n"
    )  # fmt: skip
    process = explain(tmp_path, "--no-try", "train.py")
    until(process.stderr, "ready")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and "early end" in err
    document = json.loads(out)
    assert document["errors"] == [] and len(document["findings"]) == 1
