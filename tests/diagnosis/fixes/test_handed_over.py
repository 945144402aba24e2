"""What a container keeps in objects that a library or a caller has made is detached where it is handed over."""

import pytest

from graphwidget.diagnosis.source import containers
from graphwidget.diagnosis.source.edits import text_edit
from tests.support.told import findings_of, said

SETUP = """import logging
from collections import deque, namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
torch.manual_seed(0)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
class Keep(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = deque(maxlen=50_000)
    def emit(self, record):
        self.records.append(record)
keep = Keep()
log = logging.getLogger("tests.handed.over")
log.handlers[:], log.propagate = [keep], False
log.setLevel("DEBUG")
@dataclass
class Step:
    number: int
    loss: torch.Tensor
class Spike(Exception):
    def __init__(self, step, value):
        super().__init__(f"spike at {step}")
        self.high = value
class History:
    def __init__(self):
        self.rows = []
    def push(self, row):
        self.rows.append(row)
    def row(self, **values):
        self.push(SimpleNamespace(**values))
history = History()
meter = []
def report(name, value):
    meter[:] = [value.item()]
"""
LOOP = """for i in range(12):
    h = net(torch.rand(4, 3))
    loss = h.pow(2).mean()
    opt.zero_grad()
    {first}
    loss.backward()
    opt.step()
    {last}
"""


@pytest.mark.parametrize(
    "line, cut, holder",
    [
        ("log.debug('%d: %s, mean %s', i, loss, h.mean())", "i, loss.detach(), h.mean().detach())", "keep.records"),
        ("log.debug('%(loss)s', {'loss': loss, 'i': i})", "{'loss': loss.detach(), 'i': i}", "keep.records"),
        ("log.info('done', extra={'value': loss, 'i': i})", "{'value': loss.detach(), 'i': i}", "keep.records"),
        ("history.push(Step(i, loss))", "history.push(Step(i, loss.detach()))", "history.rows"),
        ("history.push(Spike(i, loss))", "history.push(Spike(i, loss.detach()))", "history.rows"),
        ("history.push(ValueError('high', i, loss))", "ValueError('high', i, loss.detach())", "history.rows"),
        ("history.row(step=i, loss=loss)", "history.row(step=i, loss=loss.detach())", "history.rows"),
    ],
)
def test_the_line_that_hands_them_over_is_the_place_and_the_edit(line: str, cut: str, holder: str) -> None:
    (found,) = findings_of(SETUP, LOOP.format(first="report('loss', loss)", last=line))
    assert found.kind == "leak" and found.carriers == (holder,)
    assert found.fixes[0].edit[0] == f"- {line}" and cut in found.fixes[0].edit[1] and len(found.fixes[0].edit) == 2
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 8)


def test_records_of_numbers_and_short_queues_are_no_pile() -> None:
    line = "log.debug('%d: %s %s', i, loss.item(), loss.detach())"
    assert said(SETUP, LOOP.format(first="pass", last=line)) == []
    short = SETUP.replace("50_000", "4")
    assert said(short, LOOP.format(first="pass", last="log.debug('%d: %s', i, loss)")) == []


def test_where_two_lines_may_have_handed_it_over_none_is_changed() -> None:
    lines = "log.debug('%s', loss); report('loss', loss)"
    (found,) = findings_of(SETUP, LOOP.format(first="pass", last=lines))
    assert found.kind == "leak" and not any("report('loss', loss.detach())" in one for one in found.fixes[0].edit)


def test_a_line_that_runs_backward_needs_the_graph_that_it_is_given() -> None:
    backward = "def run(i, loss):\n    loss.backward()\n    history.push(SimpleNamespace(args=(i, loss)))\n"
    text = LOOP.format(first="run(i, loss)", last="pass").replace("    loss.backward()\n", "")
    (found,) = findings_of(SETUP + backward, text)
    assert found.kind == "leak" and not any("run(i, loss.detach())" in one for one in found.fixes[0].edit)


def test_a_function_that_is_handed_over_has_no_graph() -> None:
    text = "def score(values): ...\nwaiting.append(pool.submit(score, h))\n"
    ((line, edits),) = containers.detached_in(1, text, "waiting", ["[0]._result"])
    assert line == 2 and text_edit.new_text(text, edits) == "waiting.append(pool.submit(score, h.detach()))"


EPISODES = """
@dataclass
class Move:
    reward: float
    log_prob: torch.Tensor
@dataclass
class Episode:
    number: int
    moves: list
    def loss(self):
        return -torch.stack([move.log_prob * move.reward for move in self.moves]).sum()
done = []
def episodes(n):
    for i in range(n):
        moves = []
        for _ in range(3):
            {made}
        yield Episode(i, moves)
"""
MADE_THERE = "moves.append(Move(1.0, net(torch.rand(3)).tanh().sum()))"
NAMED = "p = net(torch.rand(3)).tanh().sum(); moves.append(Move(1.0, p))"
TRAINED = """for episode in episodes(12):
    opt.zero_grad()
    episode.loss().backward()
    opt.step()
    done.append(episode)
"""


@pytest.mark.parametrize("made", [MADE_THERE, NAMED])
def test_an_object_that_a_backward_has_got_its_tensors_from_is_left_as_it_is(made: str) -> None:
    (found,) = findings_of(SETUP + EPISODES.format(made=made), TRAINED)
    assert found.kind == "leak" and found.carriers == ("done",)
    assert "`done.append(episode)`" in found.fixes[0].text and not found.fixes[0].edits
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 5)


def test_objects_of_which_no_backward_has_run_the_graphs_are_made_without_one() -> None:
    boxes = "class Box:\n    def __init__(self, **values):\n        self.__dict__.update(values)\nboxes = []\n"
    check = "y = net(torch.rand(4, 3)).tanh(); box = Box(step=i, parts=[y]); boxes.append(box)"
    (found,) = findings_of(SETUP + boxes, LOOP.format(first="pass", last=check))
    assert found.kind == "leak" and found.carriers == ("boxes",)
    assert "for the backward of their pass" not in found.fixes[0].text
