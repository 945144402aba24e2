"""Questions about the text of a cell."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphwidget.diagnosis.source import syntax as source

CELL = "for e in range(2):\n    for x in xs:\n        h = f(x)\n    g()\nwhile t:\n    k = [a for a, b in c]\n"


def test_the_innermost_loop_around_a_line():
    assert [loop and loop.lineno for loop in (source.loop_at(CELL, n) for n in (1, 2, 3, 4, 6))] == [None, 1, 2, 1, 5]


def test_names_that_loops_assign_stand_for_other_tensors_soon():
    assert source.loop_names(CELL) == {"e", "x", "a", "b"}


def test_magic_lines_do_not_hide_the_rest():
    assert source.assignments("%matplotlib inline\ny = 1\n!ls\n", "y")[0].lineno == 2


def test_a_function_is_found_with_its_class():
    cell = "class A:\n    def f(self):\n        return 1\ndef g():\n    return 2\n"
    assert [
        found and (found[0] and found[0].name, found[1].name) for found in (source.function_at(cell, n) for n in (3, 5))
    ] == [
        ("A", "f"),
        (None, "g"),
    ]


def test_the_root_of_a_call_of_backward():
    lines = [
        "l.backward()",
        "torch.autograd.backward([a])",
        "torch.autograd.backward(\n b)",
        "l.backward(g)",
        "f()",
        "(",
    ]
    assert [source.backward_root(line) for line in lines] == ["l", "a", "b", None, None, None]


def test_one_small_step_is_a_statement_or_a_short_block_without_backward():
    tree = source.parse("with torch.no_grad():\n    p.mul_(2)\nfor x in y:\n    x.backward()\nz = 1\n")
    assert [source.is_small(s) for s in tree.body] == [True, False, True]


STEP = """
def step(x, prev={}):
    global total
    memory = self.memory
    outs = []
    for i in range(2):
        h = f(x)
        outs.append(h)
    memory.append(h)
    loss = sum(outs)
    seen = loss
    def log():
        print(seen)
    total = total + loss
    loss.backward()
loss.backward()
"""


def test_variables_of_a_function_end_with_it():
    assert source.ended(STEP, 15) == {"x", "prev", "memory", "outs", "i", "h", "loss"}


def test_what_a_function_was_given_or_took_over_lasts_under_other_names():
    assert source.shared(STEP, 15) == {"x", "prev", "memory", "h", "loss", "seen", "total"}
    assert source.shared(STEP, 16) == set()


def test_nothing_ends_outside_of_functions_in_their_loops_and_in_generators():
    assert source.ended(STEP, 16) == source.ended(STEP, 7) == source.ended("(", 1) == set()
    assert source.ended("def g(x):\n    h = f(x)\n    h.backward()\n    yield h\n", 3) == set()
    assert source.ended("async def g(x):\n    h = f(x)\n    h.backward()\n", 3) == {"x", "h"}


@given(st.text(alphabet="xy=+[]():\n %.1'", max_size=40), st.integers(-1, 9))
def test_any_text_can_be_asked(text, line):
    source.statements_at(text, line)
    source.loop_at(text, line)
    source.function_at(text, line)
    source.loop_names(text)
    source.ended(text, line)
    source.assigned_as(text, "x")
    source.backward_root(text)
    source.line_text(text, line)


@pytest.mark.parametrize(
    ("line", "outputs", "inputs"),
    [
        ("g, = torch.autograd.grad(y, [x, w * 2])", ["y"], ["x", "w * 2"]),
        ("grad([y.sum(), z], x, create_graph=True)", ["y.sum()", "z"], ["x"]),
        ("autograd.grad(outputs=y, inputs=(x, w))", ["y"], ["x", "w"]),
        ("loss.backward(inputs=[net.weight])", [], ["net.weight"]),
        ("loss.backward(g)", [], []),
        ("loss.backward(", [], []),
    ],
)
def test_what_a_line_asks_for_gradients_of(line, outputs, inputs):
    assert source.asked(line, "outputs") == outputs
    assert source.asked(line, "inputs") == inputs


def test_what_one_branch_of_a_test_assigns_the_other_reads_as_it_was():
    (loop,) = source.parse(
        "for i in n:\n    if i == 0:\n        h = f(x)\n    else:\n        h = f(x, h)\n    g = h\n    k = g\n"
    ).body
    assert source.carried(loop) == {"h"}


def test_the_cases_of_a_match_are_branches_and_their_patterns_assign():
    (loop,) = source.parse(
        "for x in xs:\n    match state:\n        case None:\n            y, state = f(x, a)\n"
        "        case (h, c):\n            y, state = f(x, h, last)\n    last = y\n"
    ).body
    assert source.carried(loop) == {"state", "last"}
    assert [one.lineno for one in source.statements_at(ast.unparse(loop), 6)] == [1, 2, 6]


def test_a_line_that_begins_with_a_percent_sign_may_be_no_magic() -> None:
    cell = "%matplotlib inline\nprint('%d of %d'\n      % (1, 2))\n!ls\ny = 1"
    assert source.assignments(cell, "y")[0].lineno == 5
    assert source.parse("def f(:\n%time") is None
