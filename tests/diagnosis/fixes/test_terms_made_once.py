"""A term of the loss that a function makes once, before its loop, is made in each pass; detached it would not count."""

import pytest
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

TERMS = {
    "a generator": "    term = sum((a - b).pow(2).sum() for a, b in zip(net.parameters(), [0.0, 0.0]))\n",
    "a loop": "    term = 0\n    for p in net.parameters():\n        term = term + p.pow(2).sum()\n",
}
CALLS = {
    "with a list that a comprehension makes": "train([torch.ones(4, 3) for _ in range(3)])",
    "for each of a comprehension": "runs = [train(xs) for xs in [torch.ones(3, 4, 3)] * 2]",
    "in a loop": "for round in range(2):\n    train(torch.ones(3, 4, 3))",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_it_is_moved_into_the_loop_however_the_function_is_called(term: str, call: str) -> None:
    function = (
        f"def train(xs):\n    opt = torch.optim.SGD(net.parameters(), 0.1)\n{term}    for x in xs:\n"
        "        loss = net(x).mean() + 0.1 * term\n        opt.zero_grad()\n        loss.backward()\n        opt.step()\n"
    )
    start = f"net = nn.Linear(3, 1)\n{function}"
    (found,) = findings_of(start, call)
    fix = found.fixes[0]
    assert fix.id == "recompute_in_loop" and "detach" not in {one.id for one in found.fixes}
    assert not findings_of(apply(start, fix.edits), call)
