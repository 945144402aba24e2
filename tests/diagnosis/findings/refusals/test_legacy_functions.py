"""Custom Functions as objects, which PyTorch took until 1.2: named, and written as they are today where that is simple."""

import torch
from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

SCALE = """class Scale(torch.autograd.Function):
    '''Times a number.'''
    def __init__(self, by, more=0.5):
        super().__init__()
        self.by = by
        self.more = more
    def forward(self, x):
        '''The value.'''
        return x * self.by + self.more
    def backward(self, g):
        return g * self.by
"""
SQUARE = """class Square(torch.autograd.Function):
    def forward(self, x, y):
        self.save_for_backward(x, y)
        return x * x * y
    def backward(self, g):
        x, y = self.saved_tensors
        return 2 * g * x * y, g * x * x
"""
LEAF = "w = torch.full((3,), 3.0, requires_grad=True)\n"


def gradient_of(program: str) -> torch.Tensor:
    names = {"torch": torch}
    exec(program, names)
    return names["w"].grad


def test_what_an_object_was_made_with_is_an_argument_of_forward() -> None:
    (found,) = findings_of(SCALE + LEAF + "def scaled(x): return Scale(2.0)(x)\nscaled(w).sum().backward()")
    (fix,) = found.fixes
    assert "`Scale`" in found.headline and found.made_at.line == 7 and fix.id == "static_methods"
    new = apply(SCALE + LEAF + "def scaled(x): return Scale(2.0)(x)\nscaled(w).sum().backward()", fix.edits)
    assert "def forward(ctx, x, by, more):" in new and "Scale.apply(x, 2.0, 0.5)" in new and "__init__" not in new
    assert "return g * ctx.by, None, None" in new
    assert gradient_of(new).tolist() == [2.0] * 3


def test_arguments_that_one_line_stores_are_arguments_of_forward_too() -> None:
    clip = (
        "class Clip(torch.autograd.Function):\n"
        "    def __init__(self, lo, hi):\n        super(Clip, self).__init__()\n        self.lo, self.hi = lo, hi\n"
        "    def forward(self, x):\n        self.save_for_backward(x)\n        return x.clamp(self.lo, self.hi)\n"
        "    def backward(self, g):\n        x, = self.saved_tensors\n"
        "        return g * ((x > self.lo) & (x < self.hi)).float()\n"
    )
    program = clip + LEAF + "Clip(-1, hi=4)(w * 1).sum().backward()"
    (found,) = findings_of(program)
    new = apply(program, found.fixes[0].edits)
    assert "def forward(ctx, x, lo, hi):" in new and "Clip.apply(w * 1, -1, 4)" in new
    assert gradient_of(new).tolist() == [1.0] * 3


def test_an_object_without_a_state_is_its_apply() -> None:
    program = SQUARE + LEAF + "square = Square()\nsquare(w, w.detach()).sum().backward()"
    (found,) = findings_of(program)
    new = apply(program, found.fixes[0].edits)
    assert "square = Square.apply\n" in new and gradient_of(new).tolist() == [18.0] * 3


def test_a_function_that_is_static_already_is_only_called_anew() -> None:
    static = SQUARE.replace("    def ", "    @staticmethod\n    def ").replace("self", "ctx")
    program = static + LEAF + "Square()(w, w.detach()).sum().backward()"
    (found,) = findings_of(program)
    assert "are static" in found.text and found.fixes[0].text.startswith("Call `Square.apply")
    assert gradient_of(apply(program, found.fixes[0].edits)).tolist() == [18.0] * 3


def test_an_object_that_counts_is_named_and_not_rewritten() -> None:
    counting = SCALE.replace("return x *", "self.by += 1\n        return x *").replace(
        "super().__init__()", "self.n = 0"
    )
    (found,) = findings_of(counting + LEAF + "scale = Scale(2.0)\nscale(w).sum().backward()")
    assert "`Scale`" in found.headline and "Scale.apply(...)" in found.fixes[0].text and not found.fixes[0].edits


def test_an_object_that_is_kept_with_a_state_is_not_rewritten() -> None:
    (found,) = findings_of(SCALE + LEAF + "scale = Scale(2.0)\nscale(w).sum().backward()")
    assert not found.fixes[0].edits


def test_a_first_argument_that_is_called_ctx_keeps_its_name() -> None:
    program = SQUARE.replace("self", "ctx") + LEAF + "Square()(w, torch.ones(3)).sum().backward()"
    (found,) = findings_of(program)
    assert "its methods are not static" in found.text
    new = apply(program, found.fixes[0].edits)
    assert new.count("@staticmethod") == 2 and "Square.apply(w, torch.ones(3))" in new
    assert gradient_of(new).tolist() == [6.0] * 3
