"""A detach that the program wrote and that is lost: the finding points at it, and it is mended there."""

import pytest
from told import findings_of

MODEL = """torch.manual_seed(0)
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.core, self.kept = nn.GRUCell(3, 4), None
    def forward(self, x, h):
        h = self.core(x, h)
        return h.sum(), h
cell = Cell()
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
"""
TENSOR = """{define}h = torch.zeros(2, 4)
for x in torch.randn(3, 2, 3):
    {line}
    loss, h = cell(x, h)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
TABLE = """{define}state = {{'a': torch.zeros(2, 4), 'b': torch.zeros(2, 4)}}
for x in torch.randn(3, 2, 3):
    {line}
    loss = 0
    for k in state:
        part, state[k] = cell(x, state[k])
        loss = loss + part
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LIST = TABLE.replace("{{'a': torch.zeros(2, 4), 'b': torch.zeros(2, 4)}}", "[torch.zeros(2, 4), torch.zeros(2, 4)]")
LIST = LIST.replace("for k in state:", "for k in range(2):")

THROWN = "throws its result away: `{}` keeps its graph."
OF_LOOP = "gives only the names of the loop new tensors: `{}` keeps the old ones."
OF_FUNCTION = "gives only variables of the function new tensors: `{}` keeps the old ones."


def told(program, line, define=""):
    define = f"{define}\n" if define else ""
    found = [one for one in findings_of(MODEL, program.format(define=define, line=line)) if one.severity == "error"]
    assert found[0].kind == "second_backward"
    return found[0]


@pytest.mark.parametrize(
    ("program", "line", "define", "says", "new"),
    [
        (TENSOR, "h.detach()", "", THROWN.format("h"), "h = h.detach()"),
        (TENSOR, "cut(h)", "def cut(s):\n    return s.detach()", THROWN.format("h"), "h = cut(h)"),
        (TABLE, "for k, h in state.items(): h = h.detach()", "", OF_LOOP.format("state"), "state[k] = h.detach()"),
        (TABLE, "for k, h in state.items(): h.detach()", "", THROWN.format("state"), "state[k] = h.detach()"),
        (LIST, "for i, h in enumerate(state): h = h.detach()", "", OF_LOOP.format("state"), "state[i] = h.detach()"),
        (LIST, "[h.detach() for h in state]", "", THROWN.format("state"), "state[:] = [h.detach() for h in state]"),
    ],
    ids=["a tensor", "a function's result", "a dict", "thrown away of a dict", "a list", "a comprehension"],
)
def test_it_is_mended_where_it_stands(program, line, define, says, new):
    if line.startswith("["):  # at the end of no block: one statement of the loop
        line = f"if True: {line}"
    found = told(program, line, define)
    assert says in found.text
    (fix, *_) = found.fixes
    assert fix.id == "detach" and fix.verified and any(new in one for one in fix.edit if one.startswith("+"))
    assert (found.cause.cell, found.cause.line) == (2, fix.at[1])


@pytest.mark.parametrize(
    ("program", "line", "define", "says"),
    [
        (TENSOR, "cut(h)", "def cut(s):\n    s = s.detach()", OF_FUNCTION.format("h")),
        (TENSOR, "cut(h)", "def cut(s):\n    s.detach()", THROWN.format("h")),
        (LIST, "for h in state: h = h.detach()", "", OF_LOOP.format("state")),
        (
            LIST,
            "cut(state)",
            "def cut(some):\n    for one in some:\n        one = one.detach()",
            OF_LOOP.format("state"),
        ),
    ],
    ids=["a parameter", "a parameter's is thrown away", "a loop", "a loop over a parameter"],
)
def test_where_no_edit_is_plain_the_finding_points_at_it(program, line, define, says):
    found = told(program, line, define)
    assert says in found.text and ".detach()" in found.cause.source
    assert found.fixes and found.fixes[0].id == "detach"


@pytest.mark.parametrize(
    ("program", "line", "define"),
    [
        (TENSOR, "z = h.detach()", ""),
        (TENSOR, "print(h.detach())", ""),
        (TENSOR, "other(h)", "def other(s):\n    s = s.detach()\n    print(s.sum())"),
        (TENSOR, "other(x)", "def other(s):\n    s = s.detach()"),
        (TABLE, "seen = []\n    for h in state.values():\n        h = h.detach()\n        seen.append(h)", ""),
        (TABLE, "for h in [x]: h = h.detach()", ""),
        (TENSOR, "other(h)", "def other(s):\n    while s.sum() > 9:\n        s = s.detach()"),
        (TENSOR, "other(h)", "def other(s):\n    f = lambda: s.sum()\n    s = s.detach()\n    f()"),
    ],
    ids=[
        "another name",
        "only shown",
        "read in the function",
        "of another tensor",
        "kept elsewhere",
        "another loop",
        "a while",
        "a closure",
    ],
)
def test_a_detach_that_is_used_or_of_something_else_is_not_blamed(program, line, define):
    found = told(program, line, define)
    assert "throws its result away" not in found.text and "keeps the old ones" not in found.text


OBJECT = """class Agent:
    def __init__(self):
        self.h = self.c = torch.zeros(2, 4)
    def cut(self):
        h, c = self.pair
        h, c = h.detach(), c.detach()
    def begin(self):
        self.pair = torch.zeros(2, 4), torch.zeros(2, 4)
    def run(self, x):
        h, c = self.pair
        loss, h = cell(x, h + c)
        self.pair = h, h * 2
        return loss
agent = Agent()
agent.begin()
for x in torch.randn(3, 2, 3):
    agent.cut()
    loss = agent.run(x)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def test_what_a_method_reads_of_its_object_is_put_back():
    found = findings_of(MODEL, OBJECT)[0]
    assert OF_FUNCTION.format("agent.pair") in found.text and found.cause.line == 6
    assert "+ self.pair = (h.detach(), c.detach())" in found.fixes[0].edit and found.fixes[0].verified
