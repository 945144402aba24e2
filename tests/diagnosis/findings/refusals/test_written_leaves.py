"""Leaves that are written while a graph is recorded: the block goes around the lines that need it, and no others."""

from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

MADE = "w, b = torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True)\n((w + b) ** 2).sum().backward()"


def mended(cell: str) -> tuple[str, str]:
    (found,) = findings_of(MADE, cell)
    (fix,) = found.fixes
    fixed = apply(cell, fix.edits)
    assert fix.verified and not findings_of(MADE, fixed)
    return fix.text, fixed


def test_what_clears_a_gradient_stays_outside():
    text, fixed = mended("b -= 0.1 * b.grad\nw -= 0.1 * w.grad\n\n# let go\nb.grad.zero_()\nw.grad.zero_()\n")
    block = "with torch.no_grad():\n    b -= 0.1 * b.grad\n    w -= 0.1 * w.grad\n"
    assert fixed == f"{block}\n# let go\nb.grad.zero_()\nw.grad.zero_()\n"
    assert "in lines 1 and 2." in text


def test_lines_apart_get_a_block_each():
    text, fixed = mended("w -= 0.1 * w.grad\nw.grad.zero_()\nb.sub_(0.1 * b.grad)\nb.grad = None\nw.mul_(0.9)\n")
    one = "with torch.no_grad():\n    w -= 0.1 * w.grad\nw.grad.zero_()\n"
    assert fixed.startswith(f"{one}with torch.no_grad():\n    b.sub_(0.1 * b.grad)\nb.grad = None\n")
    assert fixed.count("no_grad") == 3 and "in lines 1, 3 and 5." in text


def test_what_is_written_beside_the_graph_needs_no_block():
    _, fixed = mended("w -= 0.1 * w.grad\nb.data.sub_(0.1)\nb.detach().mul_(0.9)\nw.data -= 1\n")
    assert (
        fixed == "with torch.no_grad():\n    w -= 0.1 * w.grad\nb.data.sub_(0.1)\nb.detach().mul_(0.9)\nw.data -= 1\n"
    )


def test_a_part_of_a_leaf_is_in_the_block_of_its_neighbour():
    _, fixed = mended("w[0] -= 0.1 * w.grad[0]\nb[1].sub_(b.grad[1])\nb[w.grad.argmax()] -= 1\n")
    assert (
        fixed
        == "with torch.no_grad():\n    w[0] -= 0.1 * w.grad[0]\n    b[1].sub_(b.grad[1])\n    b[w.grad.argmax()] -= 1\n"
    )
