"""A write in place that a copy at another line makes harmless."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

BLOCK = """
torch.manual_seed(0)
net = nn.Linear(4, 4)
def block(x):
    x = torch.tanh(net(x))
    out = x
    for i in range(2):
        part = x[:, 2 * i:2 * i + 2]
        out[:, 2 * i:2 * i + 2] = part * part
    return out
block(torch.randn(3, 4)).sum().backward()
"""
ITEMS = """
torch.manual_seed(0)
class Items(nn.Module):
    def __init__(self):
        super().__init__()
        self.items, self.proj = nn.Embedding(5, 3, max_norm=0.1), nn.Linear(3, 3)
    def forward(self, i):
        every = self.proj(self.items.weight)
        query = self.items(i)
        return query @ every.t()
model = Items()
"""
CALL = """
model(torch.tensor([0, 1])).sum().backward()
"""


def test_a_second_name_becomes_that_of_a_copy():
    (fix, *_) = findings_of(BLOCK)[0].fixes
    assert fix.edit == ("- out = x", "+ out = x.clone()") and fix.verified


def test_a_second_name_by_which_nodes_have_read_stays():
    read = BLOCK.replace("part = x[", "part = out[")
    assert all("out = x.clone()" not in line for fix in findings_of(read)[0].fixes for line in fix.edit)


def test_a_leaf_that_the_forward_pass_modifies_is_read_as_a_copy():
    (fix, *_) = findings_of(ITEMS, CALL)[0].fixes
    assert "+ every = self.proj(self.items.weight.clone())" in fix.edit and fix.verified


ROWS = """
torch.manual_seed(0)
net = nn.Linear(2, 2)
def attend(x):
    a = net(x).softmax(-1)
    a.mul_(2)
    a /= a.sum()
    return a
def step():
    return attend(torch.randn(3, 2)).pow(2).sum()
step().backward()
"""


def test_all_writes_since_a_node_was_made_are_known_by_their_numbers():
    (finding,) = findings_of(ROWS)
    assert "So did `a.mul_(2)`" in finding.text
    assert finding.fixes[0].verified and "+ a = a.mul(2)" in finding.fixes[0].edit


SWAP = """
w = torch.ones(3, requires_grad=True)
pair = torch.stack([torch.ones(4, 3), torch.zeros(4, 3)]) * w
{made}
a[1:], b[1:] = {read}
(a * b).sum().backward()
"""


@pytest.mark.parametrize("made", ["a, b = pair[0], pair[1]", "a, b = pair[0] * 1, pair[1] * 1"])
@pytest.mark.parametrize(
    "read, new",
    [
        ("b[1:] * w, a[1:] * w", "b[1:].clone() * w, a[1:].clone() * w"),
        ("turn(a[1:], b[1:])", "turn(a[1:].clone(), b[1:].clone())"),
    ],
)
def test_a_statement_that_writes_to_several_tensors_reads_copies_of_all(made, read, new):
    turn = "def turn(x, y):\n    return x * w.cos() - y * w.sin(), x * w.sin() + y * w.cos()\n"
    (finding,) = findings_of(turn, SWAP.format(made=made, read=read))
    (fix, *_) = finding.fixes
    assert f"+ a[1:], b[1:] = {new}" in fix.edit and fix.verified
    assert fix.text.startswith("Read copies of `a` and `b`: ")


def test_what_the_called_function_reads_by_the_same_name_stays_modified():
    turn = "def turn(x, y):\n    return x * b[1:], y * w\n"
    made = "a, b = pair[0] * 1, pair[1] * 1"
    (finding,) = findings_of(turn, SWAP.format(made=made, read="turn(a[1:], b[1:])"))
    assert not finding.fixes[0].verified and "This is not enough" in finding.fixes[0].text


def test_all_that_a_statement_writes_to_is_copied_before_it():
    saved = "a, b = pair[0] * 1, pair[1] * 1\nearly = (a * a + b * b).sum()"
    program = SWAP.format(made=saved, read="0.0, 1.0").replace("(a * b).sum()", "(early + (a + b).sum())")
    (finding,) = findings_of(program)
    assert finding.fixes[0].edit[:2] == ("+ a = a.clone()", "+ b = b.clone()") and finding.fixes[0].verified


FOLD = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Canvas:
    light: torch.Tensor
alpha = torch.full((3,), 0.5, requires_grad=True)
def deposit(canvas):
    return canvas.light * alpha
def dim(canvas):
    canvas.light.mul_(1 - alpha)
    return canvas
"""


def test_a_field_that_nothing_can_be_assigned_to_is_read_as_a_copy() -> None:
    drawn = (
        "canvas = Canvas(torch.ones(3))\nimage = deposit(dim(canvas)) + deposit(dim(canvas))\nimage.sum().backward()"
    )
    (found,) = findings_of(FOLD, drawn)
    assert found.kind == "inplace" and found.fixes[0].verified
    assert found.fixes[0].edit == ("- return canvas.light * alpha", "+ return canvas.light.clone() * alpha")
    assert found.cause is not None
    assert not findings_of(text_edit.apply(FOLD, found.fixes[0].edits), drawn)


def test_a_field_of_a_named_tuple_is_known_by_the_line_that_writes_to_it() -> None:
    states = (
        "from typing import NamedTuple\nclass State(NamedTuple):\n    pos: torch.Tensor\n    vel: torch.Tensor\n"
        "k = torch.tensor(1.0, requires_grad=True)\n"
        "def energy(s):\n    return (k * s.pos ** 2).sum() + s.vel.pow(2).sum()\n"
        "def push(s):\n    s.vel.add_(-0.1 * k * s.pos)\n    return s\n"
    )
    run = "s = State(torch.ones(3), torch.zeros(3) * k)\nall_of_it = energy(s) + energy(push(s))\nall_of_it.backward()"
    (found,) = findings_of(states, run)
    assert found.modified_at is not None and (found.modified_at.cell, found.modified_at.line) == (1, 9)
    assert "s.vel.clone().pow(2)" in found.fixes[0].edit[1]
    assert not findings_of(text_edit.apply(states, found.fixes[0].edits), run)
