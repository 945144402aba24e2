"""Statements that modify a tensor in place: what they modify, and how the same is written without."""

import ast

import pytest

from graphwidget.diagnosis.source.in_place import statements as inplace


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
    assert inplace.out_of_place(statement) == changed


def test_an_element_of_a_list_is_replaced_by_a_new_tensor():
    assert inplace.out_of_place("xs[i] += f(x)", of_element=True) == "xs[i] = xs[i] + f(x)"
    assert inplace.out_of_place("xs[i] += f(x)") == ""  # of a tensor this would be a write, too


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
    assert inplace.out_of_place(statement) == ""


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
    assert inplace.modified(statement) == name


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("a[0], b[1:] = b[0], a[1:]", ("a", "b")),
        ("x, (s['u'][t], self.v[t]) = step(s)", ("s['u']", "self.v")),
        ("a[0] = b[0] = x", ("a", "b")),
        ("a[0], a[1] = x", ("a",)),
        ("h += x", ("h",)),
        ("y = f(x, z)", ()),
    ],
)
def test_all_that_a_statement_modifies(statement, names):
    assert inplace.all_modified(statement) == names
    assert inplace.modified(statement) == (names[0] if len(names) == 1 else None)


def test_a_write_by_a_loops_counter_is_scattered():
    cell = "for t in range(3):\n    state[t + 1] = f(state[t])\n"
    assert inplace.scattered(cell, 2, "state[t + 1] = f(state[t])") == (
        "state = state.select_scatter(f(state[t]), 0, t + 1)"
    )
    assert inplace.scattered(cell, 2, "state[mask] = 0") == ""


def test_a_copy_before_does_not_help_a_statement_that_reads_what_it_writes():
    assert inplace.reads_what_it_writes("state[t] = f(state[t - 1])")
    assert not inplace.reads_what_it_writes("state[t] = f(x)")
    assert inplace.reads_what_it_writes("a[0], b[0] = x, f(a[1])")
    assert not inplace.reads_what_it_writes("a[0], b[0] = b[0].clone(), a[0].clone()")


def test_every_proposed_line_is_python():
    for statement in ("h += x if c else y", "a.b[0] **= 2", "x.add_(1).mul_(2)"):
        ast.parse(inplace.out_of_place(statement))


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
    assert inplace.written(ast.parse(statement).body[0]) == names


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("x.view(-1).add_(1)", {"x"}),
        ("x.T.mul_(2)", {"x"}),
        ("x[0, 1:, None].zero_()", {"x"}),
        ("x.clamp_(min=0).mul_(y)", {"x"}),
        ("x.chunk(2)[0].zero_()", {"x"}),
        ("x[y > 0] = 1", {"x"}),
        ("x.as_strided((2,), (1,)).fill_(0)", {"x"}),
        ("p = x.new(x.size()).uniform_()", set()),
        ("y = x.detach().clone().add_(1)", set()),
        ("y = torch.empty_like(x).normal_()", set()),
        ("x[y > 0].zero_()", set()),
        ("x.reshape(-1).zero_()", set()),
        ("x.grad.zero_()", set()),
        ("x.data.zero_()", set()),
    ],
)
def test_the_variables_whose_tensors_a_statement_surely_modifies(statement, names):
    assert inplace.surely_written(ast.parse(statement).body[0]) == names


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
    assert inplace.reading_copies(text, ["h"]) == (new or "")


def test_reading_copies_of_a_field():
    found = inplace.reading_copies("self.h[0] = self.h[1] * 2", ["self.h"])
    assert found == "self.h[0] = self.h[1].clone() * 2"


def test_reading_copies_of_several():
    found = inplace.reading_copies("s['u'][1], b[1] = f(s['u'][0], b[0], s['w'], c)", ["s['u']", "b"])
    assert found == "s['u'][1], b[1] = f(s['u'][0].clone(), b[0].clone(), s['w'], c)"
