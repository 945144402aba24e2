"""An `if` on a tensor under a transform, written by ``torch.where``."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits import text_edit

HEAD = "from torch.func import vmap\ndef f(a):\n"
BODIES = {
    "two returns": (
        "    if a < 1:\n        return a * 2\n    return a\n",
        "    return torch.where(a < 1, a * 2, a)\n",
    ),
    "an else": (
        "    if a < 1:\n        b = a * 2\n    else:\n        b = a.exp()\n    return b\n",
        "    b = torch.where(a < 1, a * 2, a.exp())\n    return b\n",
    ),
    "one branch": (
        "    b = a.sin()\n    if b < 0.5:\n        b = b * 2\n    return b\n",
        "    b = a.sin()\n    b = torch.where(b < 0.5, b * 2, b)\n    return b\n",
    ),
    "an expression": (
        "    b = a * 2 if a > 0 else -a\n    return b\n",
        "    b = torch.where(a > 0, a * 2, -a)\n    return b\n",
    ),
}


@pytest.mark.parametrize("how", BODIES)
def test_each_element_takes_its_own_branch(how):
    body, new = BODIES[how]
    (found,) = findings_of(HEAD + body, "out = vmap(f)(torch.ones(3))")
    assert text_edit.apply(HEAD + body, found.fixes[0].edits) == HEAD + new
    assert ".item()" not in found.fixes[0].text
    assert not findings_of(HEAD + new, "out = vmap(f)(torch.ones(3))")


@pytest.mark.parametrize(
    "body",
    [
        "    if a < 1:\n        print(a)\n        return a * 2\n    return a\n",
        "    if a < 1 and a > 0:\n        return a * 2\n    return a\n",
        "    if a < 1:\n        raise ValueError\n    return a\n",
        "    if a < 1:\n        b = a\n    else:\n        c = a\n    return a\n",
    ],
)
def test_branches_that_do_more_are_left_to_the_reader(body):
    (found,) = findings_of(HEAD + body, "out = vmap(f)(torch.ones(3))")
    assert found.fixes[0].edits == () and "torch.where(condition, a, b)" in found.fixes[0].text


def test_what_is_no_branch_is_told_of_both():
    (found,) = findings_of(HEAD + "    return a * float(a)\n", "out = vmap(f)(torch.ones(3))")
    assert "for `.item()`" in found.fixes[0].text
