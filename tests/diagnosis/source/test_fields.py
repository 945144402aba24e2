"""What a class of fields keeps is detached in the argument that fills the field, and only there."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source import syntax

STEP = "class Step(NamedTuple):\n    seen: torch.Tensor\n    action: torch.Tensor\n    reward: float"
DATA = STEP.replace("(NamedTuple)", "").replace("class", "@dataclass\nclass")
CALLED = "Step = namedtuple('Step', 'seen, action reward')"
PROGRAM = """
from collections import namedtuple
from dataclasses import dataclass
from typing import NamedTuple
CLASS
policy, value, memory = nn.Linear(2, 2), nn.Linear(2, 1), []
def keep(*fields):
    memory.append(KEPT)
for _ in range(8):
    seen = torch.randn(1, 2)
    action = policy(seen).tanh()
    CALL
    value(torch.randn(1, 2)).pow(2).sum().backward()
"""


@pytest.mark.parametrize("made", [STEP, DATA, CALLED])
def test_the_fields_of_a_class_in_their_order(made):
    assert syntax.fields_of(made, "Step") == ("seen", "action", "reward")
    assert syntax.fields_of(made, "Other") == ()


@pytest.mark.parametrize("made", [STEP, DATA, CALLED])
def test_only_the_argument_that_fills_the_field_is_detached(made):
    call = "memory.append(Step(seen, action, 0.5))"
    (found,) = findings_of(PROGRAM.replace("CLASS", made).replace("KEPT", "0").replace("CALL", call))
    (line,) = [one for one in found.fixes[0].edit if one.startswith("+")]
    assert line == "+ memory.append(Step(seen, action.detach(), 0.5))"


def test_of_starred_arguments_each_that_is_a_tensor_is_detached():
    text = PROGRAM.replace("CLASS", DATA).replace("KEPT", "Step(*fields)").replace("CALL", "keep(seen, action, 0.5)")
    (found,) = findings_of(text)
    (line,) = [one for one in found.fixes[0].edit if one.startswith("+")]
    assert line == "+ memory.append(Step(*(one.detach() if hasattr(one, 'detach') else one for one in fields)))"
