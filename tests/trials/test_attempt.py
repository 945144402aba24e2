"""The verdict on a child that left no account."""

import pytest

from graphwidget.trials.attempt import _without_account
from graphwidget.trials.supervised import Ending

ENDINGS = {
    "ran longer than 10 s": (8.0, False, "did not pass the place in 8 s (the program had come there within 0.5 s)"),
    "ran longer than 4 s": (None, None, "its process had not begun after 4 s"),
    "took more than 2.0 GB of memory": (1.0, False, "it took more than 2.0 GB of memory, and was stopped"),
    "was cancelled": (1.0, None, "it was cancelled"),
    "": (1.0, None, "its process ended with status 7 and left no account: last words"),
}


@pytest.mark.parametrize("stopped", ENDINGS)
def test_a_child_without_an_account(stopped):
    ran_for, ok, why = ENDINGS[stopped]
    ending = Ending(stopped, 7, "one\nlast words\n\n", 4.0, 0)
    tried = _without_account(ending, 0.5, ran_for)
    assert (tried.ok, tried.why) == (ok, why)
