"""Functions of NumPy that are given tensors with a graph: detached, or written as torch's where a tensor is wanted."""

from __future__ import annotations

import pytest
from told import findings_of

SETUP = "import numpy as np\nnet = nn.Linear(3, 3)\nlayers = [net(torch.ones(2, 3)), net(torch.zeros(2, 3))]\none = layers[0]\n"


@pytest.mark.parametrize(
    "line, new",
    [
        ("items = np.sum(layers, 0)", "torch.sum(torch.stack(layers), dim=0)"),
        ("items = np.mean(layers, axis=0) * 2", "torch.mean(torch.stack(layers), dim=0)"),
        ("items = np.exp(one)", "torch.exp(one)"),
        ("items = np.concatenate(layers)", "torch.cat(layers)"),
    ],
)
def test_it_is_detached_first_and_torch_computes_it_second(line: str, new: str) -> None:
    (found,) = findings_of(SETUP + line)
    assert [one.id for one in found.fixes] == ["detach", "differentiable_op"]
    assert f"`{new}`" in found.fixes[1].text and new in found.fixes[1].edit[1]
    names: dict[str, object] = {}
    exec(
        "import torch\nfrom torch import nn\n"
        + SETUP
        + line.split("=")[0]
        + "= "
        + found.fixes[1].edit[1].split("= ", 1)[1],
        names,
    )
    assert names["items"].requires_grad


def test_what_torch_does_not_have_is_only_detached() -> None:
    (found,) = findings_of(SETUP + "items = np.percentile(one, 5)")
    assert [one.id for one in found.fixes] == ["detach"]
