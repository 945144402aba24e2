"""In a script under `track()` the right fix is the same as in a cell: lines without a cell's number have a text, too."""

from __future__ import annotations

import torch
from torch import nn

import graphwidget as gw


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.state = nn.GRUCell(4, 8), torch.zeros(2, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.state = self.cell(x, self.state)
        return self.state


class Trainer:
    def __init__(self) -> None:
        self.model = Encoder()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, n: int) -> None:
        for _ in range(n):
            self.step(torch.randn(2, 4))

    def step(self, x: torch.Tensor) -> None:
        loss = self.model(x).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()


def carried() -> None:
    cell = nn.GRUCell(4, 8)
    opt = torch.optim.SGD(cell.parameters(), lr=0.1)
    h = torch.zeros(2, 8)
    for _ in range(3):
        h = cell(torch.randn(2, 4), h)
        loss = h.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


def tracked(program):
    """The findings of a program that raises, and the note that its error got."""
    note = ""
    with gw.track() as tracker:
        try:
            program()
        except RuntimeError as error:
            note = "\n".join(getattr(error, "__notes__", ()))
    return [finding for finding in tracker.findings() if finding.severity == "error"], note


def test_a_state_that_a_loop_of_a_function_carries_over_is_cut():
    (finding,), note = tracked(carried)
    assert [(fix.id, fix.verified) for fix in finding.fixes] == [("detach", True)]
    assert finding.fixes[0].edit == ("  loss.backward()", "+ h = h.detach()")
    assert "test_track_fixes.py:45" in finding.fixes[0].text and "In[" not in finding.text + finding.fixes[0].text
    assert "was built in " in finding.text and "test_track_fixes.py:42 in carried" in finding.text
    assert finding.made_at.cell is None and finding.made_at.file.endswith("test_track_fixes.py")
    assert not note or "h = h.detach()" in note


def test_so_is_one_that_an_object_keeps_whose_method_loops():
    (finding,), _ = tracked(lambda: Trainer().fit(3))
    assert [(fix.id, fix.verified) for fix in finding.fixes] == [("detach", True)]
    assert finding.fixes[0].edit[-1] == "+ self.model.state = self.model.state.detach()"


def test_the_note_and_the_findings_tell_one_story():
    (finding,), note = tracked(carried)
    told = " ".join(note.split())
    assert not note or (finding.headline in told and finding.fixes[0].text.split(":")[0] in told)


def first(net: Encoder) -> None:
    net(torch.randn(2, 4)).pow(2).mean().backward()


def second(net: Encoder) -> None:
    net(torch.randn(2, 4)).pow(2).mean().backward()


def test_a_state_that_two_functions_hand_on_is_cut_and_not_behind_the_second():
    net = Encoder()

    def program() -> None:
        first(net)
        second(net)

    (found,), _ = tracked(program)
    fix = found.fixes[0]
    assert (fix.id, fix.verified) == ("detach", True)
    assert fix.edits[0].start[0] == Encoder.forward.__code__.co_firstlineno + 1  # where a pass comes by
    assert "detach()" in fix.edits[0].new


def test_a_state_whose_line_is_unknown_is_known_by_its_name():
    """Numbers that two threads have used have no line."""
    import threading

    def program() -> None:
        thread = threading.Thread(target=lambda: torch.ones(2, requires_grad=True).exp().mul(2).exp().mul(2))
        thread.start()
        thread.join()
        Trainer().fit(2)

    (found,), note = tracked(program)
    assert found.fixes[0].id == "detach" and "retain_graph" not in note
