"""Programs with hooks for saved tensors run once more, and what these gave back is measured then."""

from __future__ import annotations

import json
import os
from pathlib import Path

import prepared

PROGRAM = """import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks


class Small:
    def pack(self, t):
        return t.bfloat16()

    def unpack(self, t):
        return t


def loss_of(net, x):
    hooks = Small()
    with saved_tensors_hooks(hooks.pack, hooks.unpack):
        return net(x).pow(2).mean()


net = nn.Linear(4, 3)
for step in range(2):
    loss_of(net, torch.ones(5, 4)).backward()
"""


def test_a_second_run_tells_what_hooks_gave_back_and_the_edit_is_tried(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    temporary = tmp_path.with_name(f"{tmp_path.name}-tmp")  # not the folder around the program
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    ran = prepared.run("-m", "graphwidget", "explain", "--format", "json", "program.py", cwd=tmp_path, env=environment)
    (found,) = json.loads(ran.stdout)["findings"]
    assert "to measure what hooks for saved tensors give back" in ran.stderr
    assert found["headline"] == "`Small.unpack` does not give back the type of what was saved."
    assert "program.py:10" in found["text"] and "program.py:7" in found["text"]
    assert found["fixes"][0]["tried"]["ok"]
