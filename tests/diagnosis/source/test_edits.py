"""Edits of program text: what is added to a call, what stands in place of an in-place statement, what is detached."""

import ast

import pytest

from graphwidget.diagnosis.source import edits


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("loss.backward()", "loss.backward(retain_graph=True)"),
        ("g, = torch.autograd.grad(y[i], x)", "g, = torch.autograd.grad(y[i], x, retain_graph=True)"),
        ("loss.backward(retain_graph=False)", "loss.backward(retain_graph=True)"),
        ("[l.backward() for l in losses]", "[l.backward(retain_graph=True) for l in losses]"),
        ("größe.backward(); x = (1)", "größe.backward(retain_graph=True); x = (1)"),
    ],
)
def test_a_keyword_is_added_to_the_call_that_runs_backward(line, changed):
    assert edits.with_keyword(line, "retain_graph=True") == (f"- {line}", f"+ {changed}")


@pytest.mark.parametrize("line", ["", "x = (", "step()", "loss.backward(retain_graph=True)"])
def test_a_line_without_such_a_call_gives_no_edit(line):
    assert edits.with_keyword(line, "retain_graph=True") == ()


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("h += x", "h = h + x"),
        ("h *= a + b", "h = h * (a + b)"),
        ("self.h -= x", "self.h = self.h - x"),
        ("d.clamp_(min=0)", "d = d.clamp(min=0)"),
        ("torch.relu_(y)", "y = torch.relu(y)"),
        ("buf.copy_(w * i)", "buf = torch.empty_like(buf).copy_(w * i)"),
        ("z = y.relu_()", "z = y.relu()"),
        ("b.resize_(5)", "b = b.clone().resize_(5)"),
        ("m.fill_diagonal_(0)", "m = m.clone().fill_diagonal_(0)"),
        ("h = F.dropout(h, inplace=True)", "h = F.dropout(h, inplace=False)"),
    ],
)
def test_an_in_place_statement_is_written_out_of_place(statement, changed):
    assert edits.out_of_place(statement) == (f"- {statement}", f"+ {changed}")


@pytest.mark.parametrize(
    "statement",
    [
        "",
        "e[mask] = 0",
        "h[0].add_(1)",
        "h[0].copy_(v)",
        "out = drop(h)",
        "broken (",
        "x = y",
        "nn.init.zeros_(h)",
        "with f(): h.add_(1)",
    ],
)
def test_what_has_no_such_form_gives_no_edit(statement):
    assert edits.out_of_place(statement) == ()


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("h += x", "h"),
        ("e[mask] = 0", "e"),
        ("s['h'][t] = v", "s['h']"),
        ("d.mul_(2)", "d"),
        ("a[0].b.add_(1)", "a[0].b"),
    ],
)
def test_what_a_statement_modifies(statement, name):
    assert edits.modified(statement) == name


def test_a_write_by_a_loops_counter_is_scattered():
    cell = "for t in range(3):\n    state[t + 1] = f(state[t])\n"
    assert edits.scattered(cell, 2, "state[t + 1] = f(state[t])")[1] == (
        "+ state = state.select_scatter(f(state[t]), 0, t + 1)"
    )
    assert edits.scattered(cell, 2, "state[mask] = 0") == ()


def test_a_copy_before_does_not_help_a_statement_that_reads_what_it_writes():
    assert edits.reads_what_it_writes("state[t] = f(state[t - 1])")
    assert not edits.reads_what_it_writes("state[t] = f(x)")


def test_only_the_right_side_of_an_assignment_reads_a_name():
    assert edits.with_name("y = f(y, my, y.shape)", "y", "y.detach()") == (
        "- y = f(y, my, y.shape)",
        "+ y = f(y.detach(), my, y.detach().shape)",
    )
    assert edits.with_name("y = 1", "y", "y.detach()") == ()


def test_lines_written_after_a_statement_follow_its_last_line():
    cell = "f(\n    1,\n)\nfor x in y: g(x)\na(); b(); c(\n)\n"
    assert edits.after(cell, 1, ["h = 1"]) == ("  f(", "  1,", "  )", "+ h = 1")
    assert edits.after(cell, 4, ["h = 1"]) == ()
    assert edits.after(cell, 5, ["h = 1"]) == ("  a(); b(); c(", "  )", "+ h = 1")


def test_every_proposed_line_is_python():
    for statement in ("h += x if c else y", "a.b[0] **= 2", "x.add_(1).mul_(2)"):
        for line in edits.out_of_place(statement):
            ast.parse(line[2:])


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("h.t()[0] += 1", {"h"}),
        ("h.select(0, 1).copy_(h[0])", {"h"}),
        ("a[0], b = f(c.mul_(2)), 1", {"c"}),
        ("for i in range(2): self.x[i] = w", {"self"}),
        ("x.requires_grad_()", set()),
        ("torch.relu_(y)", set()),
    ],
)
def test_the_variables_whose_tensors_a_statement_modifies(statement, names):
    assert edits.written(ast.parse(statement).body[0]) == names


@pytest.mark.parametrize(
    "text, new",
    {
        "h[0] = h[1] * h[2]": "h[0] = h[1].clone() * h[2].clone()",
        "h[t] += f(h[t - 1], h.shape[0])": "h[t] += f(h[t - 1].clone(), h.shape[0])",
        "h[1].mul_(h[2])": "h[1].mul_(h[2].clone())",
        "h[0] = h.t()[1]": "h[0] = h.clone().t()[1]",
        "h[0] = torch.sin(other[1] * h)": "h[0] = torch.sin(other[1] * h.clone())",
        "self.h[0] = self.h[1] ** 2": None,
        "h[0] = h[1].clone() ** 2": None,
        "h[0] = other": None,
        "h.zero_()": None,
    }.items(),
)
def test_reading_copies(text, new):
    assert edits.reading_copies(text, "h") == ((f"- {text}", f"+ {new}") if new else ())


def test_reading_copies_of_a_field():
    found = edits.reading_copies("self.h[0] = self.h[1] * 2", "self.h")
    assert found == ("- self.h[0] = self.h[1] * 2", "+ self.h[0] = self.h[1].clone() * 2")
