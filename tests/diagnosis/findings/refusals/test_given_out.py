"""Operations with ``out=``: the edit leaves it out, and the program finds the result where it looked for it."""

import pytest
from told import findings_of, said

from graphwidget.diagnosis.source.edits.text_edit import apply_to

NET = "net = nn.Linear(3, 2)\nroom = torch.zeros(6, 2)\nclips = [torch.randn(4, 3) for _ in range(3)]"
MIXER = (
    "class Mixer(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.voice, self.room = nn.Linear(3, 2), torch.zeros(6, 2)\n"
    "    def forward(self, clip):\n        stems = [self.voice(clip), clip[:2, :2]]\n{}\n"
    "mixer = Mixer()\n"
    "for clip in clips:\n    mixer(clip).pow(2).sum().backward()"
)

# Cells that fail, and what the fix writes.
CURED = {
    "a name": (
        "for c in clips:\n    torch.mm(c, net.weight.t(), out=room)\n    room.pow(2).sum().backward()",
        "room = torch.mm(c, net.weight.t())",
    ),
    "a part that only this function reads": (
        MIXER.format("        torch.cat(stems, out=self.room[:6])\n        return self.room[:6].exp()"),
        "new_room = torch.cat(stems)",
    ),
    "parts that a loop fills": (
        MIXER.format(
            "        for i in range(4):\n            torch.exp(self.voice(clip[i]), out=self.room[i])\n"
            "        return self.room.cumsum(0)"
        ),
        "self.room[i] = torch.exp(self.voice(clip[i]))",
    ),
    "two results": (
        "def best(c):\n    v, i = torch.empty(4), torch.empty(4, dtype=torch.long)\n"
        "    torch.max(net(c), 1, out=(v, i))\n    return v\nbest(clips[0]).sum().backward()",
        "v, i = torch.max(net(c), 1)",
    ),
    "nobody reads it": (
        "for c in clips:\n    y = torch.mm(c, net.weight.t(), out=room) + net.bias\n    y.sum().backward()",
        "y = torch.mm(c, net.weight.t()) + net.bias",
    ),
    "the caller has it": (
        "def fill(c, into):\n    torch.mm(c, net.weight.t(), out=into)\n"
        "for c in clips:\n    made = torch.empty(4, 2)\n    fill(c, made)\n    made.pow(2).sum().backward()",
        "into.copy_(torch.mm(c, net.weight.t()))",
    ),
    "a weight": (
        "w = torch.ones(2, requires_grad=True)\n(w * w).sum().backward()\ntorch.sub(w, w.grad, alpha=0.1, out=w)",
        "with torch.no_grad():",
    ),
}


@pytest.mark.parametrize("what", CURED)
def test_the_edit_cures_it(what: str) -> None:
    cells = (NET, CURED[what][0])
    (found,) = findings_of(*cells)
    (fix,) = found.fixes
    mended = apply_to(dict(enumerate(cells, 1)), fix.edits)
    assert CURED[what][1] in mended[2]
    assert [severity for severity, _ in said(*mended.values()) if severity == "error"] == []


def test_a_part_that_others_read_is_not_replaced():
    reading = MIXER.format("        torch.cat(stems, out=self.room[:6])\n        return self.room[:6].exp()")
    (found,) = findings_of(NET, f"{reading}\nprint(mixer.room)")
    (fix,) = found.fixes
    assert not fix.edits and "made anew for each backward call" in fix.text
