"""A fault in a late pass of a steady loop is recorded and explained as it is where every call is read in full."""

from unittest.mock import Mock

import pytest
from cells import ALL_IN_FULL, NO_TIME, Notebook

from graphwidget.capture.calls.counting.steady import SteadyCalls
from graphwidget.capture.writes.optimizer_steps import OptimizerSteps
from graphwidget.diagnosis.diagnose import diagnose

NOT = staticmethod("".format)  # answers no, and is no function of a file, whose lines would be recorded
START = """
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
critic = nn.Linear(1, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
other = torch.optim.SGD(critic.parameters(), lr=0.01, momentum=0.9)
x, y = torch.ones(2, 3), torch.zeros(2, 1)
scale = torch.ones(1)
kept = []
"""
AGAIN = """
for step in range(105):
    out = net(x)
    loss = (out - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    if step == PASS:
        loss.backward()
    opt.step()
"""
CARRIED = """
state = torch.zeros(2, 1)
def train(step):
    global state
    out = net(x) + (state if step == PASS else state.detach())
    loss = (out.exp() - y).pow(2).mean()
    state = out
    opt.zero_grad()
    loss.backward()
    opt.step()
for step in range(105):
    train(step)
"""
MODIFIED = """
for step in range(105):
    out = net(x)
    hidden = out.sigmoid()
    if step == PASS:
        hidden.mul_(2)
    loss = hidden.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
STEP_BETWEEN = """
for step in range(105):
    fake = net(x)
    other.zero_grad()
    critic(fake.detach()).mean().backward()
    score = critic(fake).mean() if step == PASS else None
    other.step()
    if score is None:
        score = critic(fake).mean()
    opt.zero_grad()
    score.backward()
    opt.step()
"""
WRITTEN_BY_HAND = """
def decay(factor):
    with torch.no_grad():
        for one in net.parameters():
            one.mul_(factor)
for step in range(105):
    loss = net(x).pow(2).mean()
    if step == PASS:
        decay(0.9)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OLD_PART = """
for step in range(105):
    hidden = (net(x) * scale.exp()).tanh()
    loss = hidden.sum()
    kept.append(hidden)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step == PASS:
        (kept[PASS - 2] * 2).sum().backward()
"""
FROZEN = """
for step in range(105):
    if step == PASS:
        for one in net.parameters():
            one.requires_grad_(False)
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
PROGRAMS = {
    "again": AGAIN, "carried": CARRIED, "modified": MODIFIED, "step between": STEP_BETWEEN,
    "written by hand": WRITTEN_BY_HAND, "old part": OLD_PART, "frozen": FROZEN,
}  # fmt: skip


def told(program: str, at: int, **options):
    """Return what is recorded and said of a program whose pass `at` is wrong."""
    notebook = Notebook(diagnose=diagnose, **options)
    notebook.run(START)
    error = notebook.run(program.replace("PASS", str(at)))
    assert error is not None
    tracker = notebook.tracker
    calls = [
        (
            c.n,
            c.place,
            c.api,
            c.result,
            c.error,
            c.failed_node,
            c.failed_place,
            c.freed_by,
            c.executed_count,
            c.freed_slots,
        )
        for c in tracker.calls
    ]
    writes = [(w.place, w.by, sorted(w.paths), w.after_calls) for w in tracker.writes]
    steps = [(w.place, w.by, w.paths, w.after_calls) for w in tracker.write_recorder.log.steps()]
    findings = [(f.kind, f.severity, f.text, f.call, [(x.id, x.text) for x in f.fixes]) for f in tracker.findings()]
    notebook.close()
    return str(error), calls, writes, steps, findings


@pytest.mark.parametrize("at", [3, 12, 100])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fault_is_explained_as_without_the_quick_comparisons(name, at, monkeypatch):
    steady = told(PROGRAMS[name], at, calls=NO_TIME)
    monkeypatch.setattr(SteadyCalls, "begin", NOT)
    monkeypatch.setattr(OptimizerSteps, "_is_usual", NOT)
    assert steady == told(PROGRAMS[name], at, calls=NO_TIME)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_late_fault_is_explained_as_where_every_call_is_read(name):
    steady, full = (told(PROGRAMS[name], 100, calls=policy) for policy in (NO_TIME, ALL_IN_FULL))
    assert steady[0] == full[0]
    steady, full = ((*one[:-1], [finding[:-1] for finding in one[-1]]) for one in (steady, full))  # without fixes
    for mine, read in zip(steady[1:], full[1:], strict=True):
        assert mine[-10:] == read[-10:]


def test_most_calls_and_steps_of_a_loop_are_compared_by_little():
    notebook = Notebook(calls=NO_TIME)
    notebook.run(START)
    log, steps = notebook.tracker.log, notebook.tracker.write_recorder.steps
    log._before, steps._changed = Mock(wraps=log._before), Mock(wraps=steps._changed)
    notebook.run(AGAIN.replace("PASS", "104"))
    assert len(notebook.calls) == 106
    assert log._before.call_count < 40
    assert steps._changed.call_count < 15
    notebook.close()
