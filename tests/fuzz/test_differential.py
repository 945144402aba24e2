"""The forecast against the real engine on random programs, and the judge against forecasts known to be wrong."""

from dataclasses import replace
from datetime import date

import pytest
import torch

from graphwidget.diagnosis.steps.sentences import Telling
from graphwidget.engine import forecast as engine
from tests.fuzz.judge import Judge
from tests.fuzz.programs import program

PROGRAMS = 400  # about 5,000 calls
TODAY = 10_000 * date.today().toordinal()  # failures are printed with their seeds: `python -m tests.fuzz.run SEED 1`


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def judged(forecaster=engine.forecast, programs=40, first=0, tracked=True):
    judge = Judge(forecaster, tracked=tracked)
    for seed in range(first, first + programs):
        judge.run(seed)
    return judge


@pytest.mark.parametrize("tracked", [True, False], ids=["tracked", "a stranger's"])
@pytest.mark.parametrize("first", [0, TODAY], ids=["the same every day", "of today"])
def test_every_forecast_without_an_assumption_holds_and_looking_changes_nothing(first, tracked):
    judge = judged(programs=PROGRAMS // 4, first=first, tracked=tracked)
    print(f"seeds from {first}: {judge.report()}")
    assert not judge.mistakes, "\n".join(map(str, judge.mistakes[:10]))
    assert judge.counts["calls"] > 600
    # Without a tracker, hooks hidden in a node are unknown, so in-place writes into views are not examined.
    most = 0.05 if tracked else 0.1
    left_open = sum(judge.counts[kind] for kind in ("unknown", "assumes", "open slots"))
    assert left_open < most * judge.counts["calls"]


def test_the_programs_meet_every_kind_of_ending_that_is_common():
    counts = judged(programs=150, first=9000).counts
    for outcome in ("ok", "freed", "inplace", "no_grad", "unused", "checkpoint", "not_differentiable"):
        assert counts[f"outcome {outcome}"], outcome


def test_a_program_is_the_same_every_time():
    assert program(7) == program(7) != program(8)


def broken(**changes):
    """Return a forecast with one rule broken: its arguments are changed."""
    return lambda *args, **kwargs: engine.forecast(*args, **{**kwargs, **changes})


def frees_nothing_if_it_fails(*args, **kwargs):
    told = engine.forecast(*args, **kwargs)
    return replace(told, frees={}, executes=()) if told.ok is False else told


def first_in_first_out(snapshot, roots, **kwargs):
    """Break the order of execution, which decides (ties aside) which node fails."""
    return engine.forecast(replace(snapshot, seq=type(snapshot.seq)("q", [0] * len(snapshot))), roots, **kwargs)


def never_stale(snapshot, roots, **kwargs):
    return engine.forecast(
        replace(snapshot, slot_state=bytearray(snapshot.slot_state).replace(b"\2", b"\0")), roots, **kwargs
    )


def without_facts(snapshot, roots, **kwargs):
    return replace(engine.forecast(replace(snapshot, facts={}), roots, **kwargs), assumes=())


@pytest.mark.parametrize(
    "wrong",
    [
        broken(api="backward"),
        broken(inputs=None),
        broken(allow_unused=True),
        broken(retain_graph=True),
        frees_nothing_if_it_fails,
        first_in_first_out,
        never_stale,
        without_facts,
    ],
    ids=["api", "inputs", "unused", "retain", "failing call", "order", "versions", "facts"],
)
def test_the_judge_finds_a_forecast_with_one_rule_broken(wrong):
    assert judged(wrong, programs=60).mistakes


def always_set(self, at):
    return "set"


def longer_shapes(self, node, nr):
    outputs = self.graph.outputs_of(node)
    return None if outputs is None else (*outputs[nr].shape, 1)


@pytest.mark.parametrize("name, wrong", [("grad", always_set), ("_shape", longer_shapes)])
def test_the_judge_finds_steps_that_tell_something_wrong(name, wrong, monkeypatch):
    assert not judged(programs=20).mistakes
    monkeypatch.setattr(Telling, name, wrong)
    assert judged(programs=20).mistakes
