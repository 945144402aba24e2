"""Edits take the names that the text which they go into has for torch."""

import pytest

from graphwidget.diagnosis.source.edits.own_names import in_own_names
from graphwidget.diagnosis.source.edits.text_edit import apply_to
from graphwidget.model import TextEdit


def edited(new: str, *texts: str, files: bool = False) -> str:
    """The last of these texts, with `new` written before its last line."""
    numbered = dict(enumerate(texts, 1))
    at = (len(texts[-1].splitlines()), 0)
    edits = in_own_names(numbered, numbered.keys() if files else (), (TextEdit(at, at, new, len(texts)),))
    return apply_to(numbered, edits)[len(texts)]


@pytest.mark.parametrize(
    "imports, written",
    [
        ("import torch", "y = torch.nn.functional.relu(torch.stack(x))"),
        ("import torch as th", "y = th.nn.functional.relu(th.stack(x))"),
        ("import torch as T\nimport torch.nn.functional as F", "y = F.relu(T.stack(x))"),
        ("from torch import nn, stack", "y = nn.functional.relu(stack(x))"),
        ("import torch.nn as nn, torch", "y = torch.nn.functional.relu(torch.stack(x))"),
        ("import torch.nn", "y = torch.nn.functional.relu(torch.stack(x))"),
    ],
)
def test_the_names_are_those_of_the_text(imports: str, written: str) -> None:
    text = f"{imports}\nx = []\nprint(x)\n"
    new = edited("y = torch.nn.functional.relu(torch.stack(x))\n", text)
    assert new == f"{imports}\nx = []\n{written}\nprint(x)\n"


def test_a_text_without_torch_imports_it_behind_what_must_be_first() -> None:
    text = '"""A net."""\nfrom __future__ import annotations\n\nfrom torch import nn\n\nprint(nn)\n'
    new = edited("with torch.no_grad(): pass\n", text, files=True)
    assert new == (
        '"""A net."""\nfrom __future__ import annotations\n\nimport torch\nfrom torch import nn\n\n'
        "with torch.no_grad(): pass\nprint(nn)\n"
    )


def test_a_text_without_imports_has_it_before_its_first_statement() -> None:
    new = edited("torch.manual_seed(0)\n", '"""Steps."""\n\n@hook\ndef step(): pass\nstep()\n', files=True)
    assert new == '"""Steps."""\n\nimport torch\n@hook\ndef step(): pass\ntorch.manual_seed(0)\nstep()\n'


def test_cells_share_what_they_import_and_files_do_not() -> None:
    assert edited("torch.no_grad()\n", "import torch as th\n", "a = 1\nb\n") == "a = 1\nth.no_grad()\nb\n"
    files = edited("torch.no_grad()\n", "import torch as th\n", "a = 1\nb\n", files=True)
    assert files == "import torch\na = 1\ntorch.no_grad()\nb\n"


def test_what_only_ends_like_torch_stays() -> None:
    assert edited("own.torch.no_grad(); mytorch()\n", "import torch as th\nb\n") == (
        "import torch as th\nown.torch.no_grad(); mytorch()\nb\n"
    )


def test_a_text_that_reads_torch_has_it_from_elsewhere() -> None:
    text = "from common import *\nx = torch.ones(3)\nprint(x)\n"
    assert edited("y = torch.stack([x])\n", text) == (
        "from common import *\nx = torch.ones(3)\ny = torch.stack([x])\nprint(x)\n"
    )
