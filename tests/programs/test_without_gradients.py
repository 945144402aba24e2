"""What `graphwidget run` says of parameters without a gradient where no finding tells why."""

from told import record_of

from graphwidget.programs.recording.records import _without_gradients

PROGRAM = """
a, b = nn.Linear(2, 1), nn.Linear(2, 1)
opt = torch.optim.SGD([*a.parameters(), *b.parameters()], 0.1)
for _ in range(4):
    opt.zero_grad()
    LOSS.sum().backward()
    opt.step()
"""


def test_they_are_named_and_nothing_is_said_where_there_are_none():
    missing = _without_gradients(record_of(PROGRAM.replace("LOSS", "a(torch.ones(1, 2))")))
    assert missing == "No step of an optimizer found a gradient of `b.weight` and `b.bias`: why, was not measured."
    both = "(a(torch.ones(1, 2)) + b(torch.ones(1, 2)))"
    assert _without_gradients(record_of(PROGRAM.replace("LOSS", both))) == ""
