"""Numbers that are taken out of tensors, and the tensors that are made of them."""

import ast
from dataclasses import replace

import pytest
import torch
from told import record_of

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.diagnosis.fixes import as_tensors
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import Finding, Lineage, MeasuredCut, TextLine

W = "import math\nw = nn.Parameter(torch.tensor(0.5))\nv = nn.Parameter(torch.tensor(1.0))"
OPT = "opt = torch.optim.SGD([w, v], lr=0.1)"


def measured(*cells: str, lines: tuple[int, ...], by: str = "__float__", call: int | None = 0) -> Finding:
    """The first finding of cells, where numbers were measured to leave the graph at some lines of the second one."""
    record = record_of(*cells)
    cuts = tuple(MeasuredCut((TextLine(2, None, line),), by, True, ("w",), True) for line in lines)
    return diagnose(replace(record, lineage=Lineage(call, cuts=cuts)))[0]


def test_the_line_that_takes_a_number_is_told_and_not_the_one_that_wraps_it() -> None:
    function = "def turn(x):\n    a = x * 2\n    s = math.sin(a)\n    c = math.cos(a) + 1\n    return torch.tensor([s, c, 1.0])"
    found = measured(W, function, "loss = turn(w).sum()\nloss.backward()", lines=(3, 4))
    assert found.cut_at is not None and (found.cut_at.cell, found.cut_at.line) == (2, 3)
    assert "`math.sin` takes a Python number out of what is computed from `w`" in found.text
    assert "So does In[2], line 4" in found.text and "only makes a tensor" in found.text
    assert sorted(edit.new for edit in found.fixes[0].edits) == [
        "torch.cos(torch.as_tensor(a))",
        "torch.sin(torch.as_tensor(a))",
        "torch.stack([s, c, torch.as_tensor(1.0)])",
    ]


def test_numbers_that_do_not_get_there_are_not_blamed() -> None:
    function = (
        "def loss_of(x):\n    shown = float(x)\n    print(shown)\n    total = 0.0\n    total += float(x * 2)\n"
        "    return torch.tensor(total)"
    )
    found = measured(W, function, "loss = loss_of(w)\nloss.backward()", lines=(2, 5))
    assert found.cut_at is not None and found.cut_at.line == 5 and "So do" not in found.text
    assert [edit.new for edit in found.fixes[0].edits] == ["(x * 2)", "torch.as_tensor(total)"]


def test_where_no_number_gets_there_the_text_stays_the_witness() -> None:
    function = "def loss_of(x):\n    shown = float(x)\n    other = math.sin(x)\n    return torch.tensor(2.0)"
    found = measured(W, function, "loss = loss_of(w)\nloss.backward()", lines=(2, 3))
    assert "Python number" not in found.text


TABLE = (
    "import numpy as np\n"
    "def best(*paths):\n    z = np.array(paths)\n    return {}(np.exp(z).sum())\n"
    "def knapsack(worth):\n    table = np.zeros(len(worth) + 1)\n    seen = np.arange(3)\n"
    "    for i in range(len(worth)):\n"
    "        table[i + 1] = worth[i].item() + best(table[i], table[i - 1])\n"
    "    return torch.tensor(table[-1])"
)


def test_a_table_of_numpy_becomes_one_of_torch_and_so_do_the_functions_that_read_it() -> None:
    found = measured(
        W, TABLE.format("np.log"), "loss = knapsack(w * torch.ones(3))\nloss.backward()", lines=(9,), by="item"
    )
    edited = text_edit.apply(TABLE.format("np.log"), found.fixes[0].edits)
    assert "table = torch.zeros(len(worth) + 1)" in edited and "worth[i] + best(" in edited
    assert "z = torch.stack(paths)" in edited and "torch.log(torch.exp(z).sum())" in edited
    assert "seen = np.arange(3)" in edited and "torch.as_tensor(table[-1])" in edited


def test_where_torch_has_no_such_function_the_words_say_where_numpy_computes() -> None:
    found = measured(
        W, TABLE.format("np.nan_to_num"), "loss = knapsack(w * torch.ones(3))\nloss.backward()", lines=(9,), by="item"
    )
    assert not found.fixes[0].edits and "no NumPy (In[2], line 4)" in found.fixes[0].text


def test_an_array_that_is_taken_is_told_as_one() -> None:
    function = "import numpy as np\ndef norm(x):\n    a = x.detach().cpu().numpy()\n    return torch.tensor(np.sqrt(a))"
    found = measured(W, function, "loss = norm(w)\nloss.backward()", lines=(3,), by="detach")
    assert "`numpy` takes an array out of what is computed from `w`" in found.text
    edited = text_edit.apply(function, found.fixes[0].edits)
    assert "a = x\n" in edited and "np.sqrt" not in edited


def test_a_parameter_of_several_that_gets_no_gradient() -> None:
    function = "def turn(x):\n    s = math.sin(x)\n    return torch.tensor([s, s])"
    loop = "for _ in range(3):\n    opt.zero_grad()\n    (turn(w).sum() * v).backward()\n    opt.step()"
    found = measured(f"{W}\n{OPT}", function, loop, lines=(2,), call=None)
    assert found.kind == "silent" and "`math.sin` takes a Python number out of it" in found.text
    assert [edit.new for edit in found.fixes[0].edits] == ["torch.sin(torch.as_tensor(x))", "torch.stack([s, s])"]


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize(
    ("line", "taken"),
    [
        ("y = math.exp(x) * math.sqrt(2)", ["math.exp"]),
        ("y = math.log(math.fabs(x)) + 0", ["math.log", "math.fabs"]),
        ("y = math.pow(x, 2)", ["math.pow"]),
        ("y = torch.tensor([[math.cos(x), -math.sin(x)], [0, 1.0]], dtype=torch.float64)", ["math.cos", "math.sin"]),
        ("y = torch.tensor(float(x) * 2)", ["float"]),
        ("y = torch.tensor([x.item(), (x * 2).item()])", ["item"]),
    ],
)
def test_a_line_that_computes_with_tensors_has_the_same_value(line: str, taken: list[str]) -> None:
    import math

    (statement,) = ast.parse(line).body
    assert as_tensors.taken_by(statement) == taken
    x = torch.tensor(0.7, requires_grad=True)
    before, after = {"x": x, "math": math, "torch": torch}, {"x": x, "math": math, "torch": torch}
    exec(line, before)
    exec(text_edit.apply(line, as_tensors.edits(None, line, statement)), after)
    torch.testing.assert_close(torch.as_tensor(after["y"]), torch.as_tensor(before["y"]), check_dtype=False)
    assert after["y"].requires_grad


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("loss = torch.tensor([f(a) for a in xs])", "torch.stack([f(a) for a in xs])"),
        (
            "loss = torch.tensor([torch.tensor([f(a) for a in b]).mean() for b in xs])",
            "torch.stack([torch.stack([f(a) for a in b]).mean() for b in xs])",
        ),
        ("parts = []\nparts.append(x)\nloss = torch.tensor(parts)", "torch.stack(parts)"),
        (
            "loss = torch.tensor([[c, -s], [s, 0.0]])",
            "torch.stack([torch.stack([c, -s]), torch.stack([s, torch.as_tensor(0.0)])])",
        ),
    ],
)
def test_a_tensor_of_computed_tensors_is_a_stack(text: str, new: str) -> None:
    (edit,) = as_tensors.edits(1, text, ast.parse(text).body[-1])
    assert edit.new == new


def test_a_call_for_what_its_hooks_keep_is_no_line_that_only_shows() -> None:
    hooked = "kept = []\nnet = nn.Linear(2, 2)\nnet.register_forward_hook(lambda m, i, o: kept.append(o))"
    opt = "v = nn.Parameter(torch.ones(2))\nopt = torch.optim.SGD([*net.parameters(), v], lr=0.1)"
    loop = (
        "for _ in range(3):\n    with torch.no_grad():\n        net(torch.ones(2))\n"
        "    loss = (kept[-1] * v).sum()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()"
    )
    record = record_of(hooked, opt, loop)
    lines, off = (TextLine(3, None, 3),), (TextLine(3, None, 2),)
    cut = MeasuredCut(lines, "linear", False, ("net.weight", "net.bias"), True, off, used=True)
    (found,) = diagnose(replace(record, lineage=Lineage(None, cuts=(cut,))))
    assert found.cut_at is not None and found.cut_at.line == 3 and "`torch.no_grad()`" in found.text
    assert found.fixes[0].edits
