"""The lists that a stranger reads first: kinds of fixes, the ladder of questions, what finds and explains."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

import graphwidget.diagnosis
from graphwidget.diagnosis import diagnose
from graphwidget.diagnosis.fixes import FIX_IDS, FIXES
from graphwidget.diagnosis.fixes.second_backward import create_graph, detach, recompute, remove_call, retain, sum_losses
from graphwidget.diagnosis.fixes.second_backward.ladder import Rung, climb, only_if
from graphwidget.diagnosis.no_graph.cutting import CUTTING
from graphwidget.model import torch_messages

PACKAGE = Path(graphwidget.diagnosis.__file__).parent


def ids_in(path):
    """The ids that a file gives to fixes, where it writes them as they are."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if called in ("Fix", "fix", "_Remedy"):
            given = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "id")]
            yield from (one.value for one in given if isinstance(one, ast.Constant))


def test_every_id_is_declared_and_every_declared_id_is_used():
    used = {one for path in PACKAGE.rglob("*.py") for one in ids_in(path)} | set(CUTTING.values())
    assert used == FIX_IDS.keys()


def case(**facts):
    """A case in which no question is answered with yes but by these facts."""
    names = "same_cell_again called_by_callee in_loop repeated grad_used only_added carried_state made_in_same_pass"
    setting = SimpleNamespace(**{name: facts.get(name, False) for name in names.split()})
    names = "same_root built_after exclusive_leaves starved steps_modified_the_old_part brings_leaves"
    reuse = SimpleNamespace(**{name: facts.get(name, None) for name in names.split()}, carrier_paths=())
    for call in ("earlier", "later"):
        setattr(reuse, call, SimpleNamespace(place=SimpleNamespace(run=facts.get(call), line=None)))
    names = "stepped all_comes_from_one_container drawn_at_random not_for_the_old_part computed_parameters in_closure"
    names += " other_step_trains_the_old_part weighs_the_passes is_for_another_optimizer runs_a_term_first"
    names += " stays_at_its_first_value filled_before_the_passes"
    own = {name: facts.get(name, False) for name in names.split()}
    return SimpleNamespace(setting=setting, reuse=reuse, **own)


@pytest.mark.parametrize(
    ("facts", "proposals"),
    [
        ({"same_root": True}, [retain, recompute, remove_call]),
        ({"same_root": True, "earlier": 0, "later": 1}, [retain, recompute]),
        ({"same_root": True, "in_loop": True}, [sum_losses.in_loop, recompute, retain]),
        ({"same_root": True, "stepped": True}, [sum_losses.in_loop, recompute, remove_call]),
        ({}, [sum_losses, retain, detach]),
        ({"built_after": True, "grad_used": True}, [create_graph]),
        ({"built_after": True, "carried_state": True, "made_in_same_pass": True}, [detach]),
        ({"built_after": True, "stepped": True}, [detach, recompute]),
        ({"built_after": True, "stepped": True, "exclusive_leaves": {1}}, [detach, recompute]),
        ({"built_after": True, "made_in_same_pass": True}, [recompute, recompute.or_cut]),
        (
            {"built_after": True, "made_in_same_pass": True, "filled_before_the_passes": True},
            [detach, recompute],
        ),
        ({"built_after": True, "stepped": True, "stays_at_its_first_value": True}, [recompute, detach]),
        ({"built_after": True, "in_closure": True, "starved": {1}}, [recompute, detach]),
        ({"built_after": True, "stepped": True, "starved": {1}, "not_for_the_old_part": True}, [detach, recompute]),
        ({"built_after": True, "stepped": True, "starved": {1}, "is_for_another_optimizer": True}, [detach, recompute]),
    ],
)
def test_what_to_try_first(facts, proposals):
    found = climb(FIXES["second_backward"], case(**facts))
    assert found == tuple(getattr(one, "propose", one) for one in proposals)


def test_the_last_question_of_a_ladder_is_always_answered_with_yes():
    assert all(climb(ladder, case(built_after=True, starved={1})) for ladder in FIXES.values())


def test_every_rung_says_why():
    assert all(rung.reason.endswith(".") and rung.proposals for ladder in FIXES.values() for rung in ladder)


def test_a_question_in_front_of_a_ladder_is_asked_first():
    ladder = only_if(lambda case: case.stepped, (Rung(lambda case: True, (retain.propose,), "Why."),))
    assert climb(ladder, case(stepped=True)) == (retain.propose,)
    assert climb(ladder, case()) == ()


def test_every_reason_of_torch_s_messages_has_an_explanation():
    assert {reason for reason, _ in torch_messages.AUTOGRAD_CALL} == diagnose.EXPLANATIONS.keys()
