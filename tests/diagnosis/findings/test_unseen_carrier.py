"""A state that a waiting generator keeps in a local variable is named, though nothing leads to it."""

from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

WINDOWS = """rate = torch.tensor(0.5, requires_grad=True)
def stepped(state):
    return (state * rate).sin()
def windows(n):
    state = torch.ones(3)
    for _ in range(n):
        seen = []
        for _ in range(2):
            state = stepped(state)
            seen.append(state)
        yield torch.stack(seen)"""
FITTED = "for seen in windows(3):\n    loss = seen.pow(2).sum()\n    loss.backward()"


def test_a_variable_of_a_waiting_generator_is_named_with_its_line() -> None:
    (found,) = findings_of(WINDOWS, FITTED)
    assert found.kind == "second_backward" and found.names[0] == "state"
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 9)
    assert "`state = stepped(state)` (In[1], line 9) computes `state` from its previous value" in found.text
    assert not findings_of(apply(WINDOWS, found.fixes[0].edits), FITTED)


def test_a_variable_in_sight_is_named_as_before() -> None:
    plain = "state = torch.ones(3)\nfor _ in range(3):\n    state = stepped(state)\n    state.pow(2).sum().backward()"
    (found,) = findings_of(WINDOWS, plain)
    assert "state" in found.carriers and "in sight" not in found.text


JOINED = """rate = torch.tensor(0.5, requires_grad=True)
def joiner():
    tail = None
    def add(parts):
        nonlocal tail
        head, rear = parts[:2], parts[2:]
        if tail is None:
            tail = torch.zeros(1)
        shifted = torch.cat([tail, rear[:-1]])
        tail = rear[-1:]
        return head + shifted
    return add
def blocks(n):
    add = joiner()
    for _ in range(n):
        yield add((torch.ones(4) * rate).sin())"""


def test_what_a_closure_of_a_waiting_generator_keeps_is_named_by_the_line_that_made_it() -> None:
    (found,) = findings_of(JOINED, FITTED.replace("windows", "blocks"))
    assert found.kind == "second_backward" and found.carriers == ("tail",)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 10)
    assert not findings_of(apply(JOINED, found.fixes[0].edits), FITTED.replace("windows", "blocks"))
