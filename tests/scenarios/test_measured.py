"""The recorded facts of the scenarios are those of plain torch: each program runs again, without graphwidget."""

import measure
import pytest
import truths
from runs import plain

SCENARIOS = truths.scenarios()


@pytest.fixture(scope="module", autouse=True)
def torch_is_here():
    """Import torch once: every program runs in a fork of this process."""
    plain.preload()


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_written_truth_is_what_torch_does(name):
    assert list(measure.differences(SCENARIOS[name])) == []
