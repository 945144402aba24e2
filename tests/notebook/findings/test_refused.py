"""What cells raise outside the engine, and gradients that are None: told of what the cells left, and only while it stands."""

from __future__ import annotations

import sys

import pytest

import graphwidget as gw

LEAF = "w = torch.ones(3, requires_grad=True)"


def test_what_is_refused_is_reported_until_the_cell_has_run(run):
    assert [f.kind for f in run(LEAF, "w.numpy()")] == ["refused"]
    assert run(LEAF, "w.detach().numpy()") == []


def test_the_line_is_that_of_the_function_that_raised(run):
    (found, *_) = run(LEAF, "def values(t):\n    t = t * 1\n    return t.numpy()", "values(w)")
    assert (found.made_at.cell, found.made_at.line) == (3, 3) and found.fixes[0].at == (3, 3)
    assert "+ return t.detach().numpy()" in found.fixes[0].edit


def test_an_exception_is_explained_by_what_it_is_about(run):
    run(LEAF, "w.numpy()", "w.backward()")
    assert [f.tensor for f in gw.explain(sys.last_value)] == ["w"]
    assert "not one number" in gw.explain(sys.last_value)[0].headline


def test_the_newest_error_comes_first_whoever_raised_it(run):
    cells = (LEAF, "loss = w.exp().sum()", "loss.backward()", "w.numpy()", "loss.backward()", "w -= 1")
    assert [f.kind for f in run(*cells)] == ["refused", "second_backward", "refused"]
    assert [f.tensor for f in gw.explain() if f.kind == "refused"] == ["w", "w"]
    assert "w -= 1" in gw.explain()[0].headline


def test_an_error_in_code_of_no_cell_has_no_line(run):
    (found,) = run("torch.ones(3, dtype=torch.int64).requires_grad_()")
    assert found.kind == "no_grad" and found.fixes[0].id == "float_dtype"


@pytest.mark.parametrize("what", ["w.mean().backward()\nnothing.real(w.grad)", "nothing.real(w)", "nothing.grad.real"])
def test_another_none_is_not_taken_for_a_gradient(run, what):
    assert run(LEAF, "nothing = None", what) == []


def test_a_write_to_a_leaf_that_a_graph_has_saved_is_not_called_right(run):
    (found,) = run(LEAF, "loss = (w * w).sum()", "w -= 1")
    assert found.fixes[0].edit and not found.fixes[0].verified
    (found,) = run(LEAF, "loss = 0", "w -= 1")
    assert found.fixes[0].verified


@pytest.mark.parametrize(
    "cells",
    [
        ("y = w * 2", "y.retain_grad()", "y.sum().backward()", "y.grad"),  # asked for
        ("(w * 2).sum().backward()", "g = w.grad", "w = w - g"),  # was a leaf when it was read
        ("g = w.grad; w = w * 2",),
        ("y = w * 2", "y.sum().backward()", "for _ in range(2):\n    y.grad"),
        ("y = w * 2", "torch.autograd.grad(y.sum(), w)"),
    ],
    ids=["retained", "replaced", "one line", "in a loop", "a function of that name"],
)
def test_reading_a_gradient_that_may_be_there_is_not_reported(run, cells):
    assert run(LEAF, *cells) == []


def test_reading_the_gradient_of_no_leaf_is_reported(run):
    (found,) = run(LEAF, "y = w * 2\ny.sum().backward()", "y.grad")
    assert (found.kind, found.severity, found.tensor) == ("silent", "info", "y")
    assert found.fixes[0].at == (3, 1) and found.fixes[0].verified
    assert run(LEAF, "y = w * 2\ny.sum().backward()", "y") == []  # that cell was changed and run again


def test_asking_for_a_gradient_is_no_sure_fix_where_no_backward_came_by(run):
    (found,) = run(LEAF, "y = w * 2", "y.grad")
    assert not found.fixes[0].edit and "run a backward that reaches it" in found.fixes[0].text


def test_a_fix_is_not_called_verified_where_the_backward_would_fail_anyway(run):
    (found, *_) = run(LEAF, "y = w.exp()", "y.sum().backward()", "y.backward()")
    assert found.kind == "refused" and [fix.verified for fix in found.fixes] == [False, False]


def test_a_root_from_which_another_was_computed_is_simulated_too(run):
    (found, *_) = run(LEAF, "y = w.exp()\nz = y * 2", "y.backward()")
    assert "3 values, of shape [3]" in found.text and [fix.verified for fix in found.fixes] == [True, True]


def test_a_functions_own_variable_is_not_taken_for_the_notebooks_of_that_name(run):
    (found, *_) = run(LEAF, "y = torch.ones(5, 7) * w[0]\ndef f(w):\n    y = w.exp()\n    y.backward()", "f(w)")
    assert "3 values, of shape [3]" in found.text


def test_an_expression_is_summed_in_brackets(run):
    (found, *_) = run(LEAF, "(w * 2).backward()")
    assert "+ (w * 2).sum().backward()" in found.fixes[0].edit and "`(w * 2).sum()`" in found.fixes[0].text


def test_of_an_expression_that_is_differentiated_no_edit_is_reported(run):
    (found, *_) = run(LEAF, "torch.autograd.grad(w * 2, w)")
    assert found.tensor == "w * 2" and found.fixes[0].edit == ()


def test_a_computed_weight_is_to_be_used_by_a_functional_call(run):
    (found, *_) = run(LEAF, "net = torch.nn.Linear(3, 1)", "net.weight = net.weight * 2")
    assert found.tensor == "net.weight" and "functional_call" in found.fixes[0].text and not found.fixes[0].edit


def test_a_replaced_leaf_is_updated_instead_unless_a_graph_needs_it(run):
    step = "for _ in range(2):\n    (w * w).sum().backward()\n    w = w - 0.1 * w.grad"
    (found, *_) = run(LEAF, step)
    assert found.uids and found.fixes[0].edit[1:] == ("+ with torch.no_grad():", "+     w -= 0.1 * w.grad")
    assert found.fixes[0].verified
    (found, *_) = run(LEAF, "kept = (w * w).sum()", step)
    assert found.fixes[0].edit and not found.fixes[0].verified


def test_a_copy_of_an_object_with_several_that_are_no_leaves_is_given_their_values(run):
    (found, *_) = run(LEAF, "import copy\nclass A: pass\na = A()\na.x, a.y = w * 2, w * 3", "copy.deepcopy(a)")
    memo = "{id(one): one.detach().clone() for one in (a.x, a.y)}"
    assert found.fixes[0].edit == ("- copy.deepcopy(a)", f"+ copy.deepcopy(a, {memo})")


def test_a_copy_before_a_backward_leaves_the_original_its_graph(run):
    made = "import copy\nclass A: pass\na = A()\na.x, a.cache = w * 2, {'y': w * 3}"
    copied = "for i in range(2):\n    b = copy.deepcopy(a)\n    a.x.sum().backward()"
    (found, *_) = run(LEAF, made, copied)
    new = "copy.deepcopy(a, {id(one): one.detach().clone() for one in (a.x, a.cache['y'])})"
    assert any(new in line for line in found.fixes[0].edit)


NONE = {
    "no backward": ("w.grad.norm()", "No backward is known to have run."),
    "plain": ("x = torch.ones(3)\n(w * x).sum().backward()\nx.grad.norm()", "does not require grad"),
    "set to None": ("w.mean().backward()\nw.grad = None\nw.grad.norm()", "`zero_grad()` has set it to None since, or"),
    "took no part": ("b = w.detach().requires_grad_()\nw.mean().backward()\nb.grad.norm()", "none that ran is known"),
    "in a function": ("def f(t):\n    t = t * 2\n    return 0.1 * t.grad\nf(w)", "it is no leaf"),
    "computed before": ("v = w * 1\nv.sum().backward()\nv = v - 0.1 * v.grad", "`v` was computed in In[3], line 1"),
    "of a module": ("net = torch.nn.Linear(2, 1)\nnet.weight.grad.norm()", "No backward is known to have run."),
    "of a list": ("ws = [w]\nws[0].grad.norm()", "No backward is known to have run."),
    "in several lines": ("print(\n    1,\n    w.grad.norm(),\n)", "No backward is known to have run."),
}


@pytest.mark.parametrize("values", [".to(torch.float64)", ".view(3, 1).double()"])
def test_a_leaf_that_was_converted_where_it_was_made_is_made_one_afterwards(run, values):
    (found, *_) = run(f"v = torch.randn(3, requires_grad=True){values}", "v.sum().backward()", "v.data -= 0.1 * v.grad")
    assert found.headline == "`v.grad` is None."
    assert found.fixes[0].edit[1] == f"+ v = torch.randn(3){values}.requires_grad_()"


def test_what_was_none_in_a_comprehension_is_said_while_its_variable_is_there(run):
    said = [one.headline for one in run(LEAF, "[p.grad.norm() for p in [w * 1]]")]
    # From 3.12 on a comprehension has no frame of its own, and its variable is gone when the error has left it.
    assert said == (["`p.grad` is None."] if sys.version_info < (3, 12) else [])


@pytest.mark.parametrize("cell, says", NONE.values(), ids=NONE)
def test_a_gradient_that_is_none_is_reported_with_the_reason(run, cell, says):
    (found, *_) = run(LEAF, cell)
    assert (found.kind, found.severity) == ("no_grad", "error")
    assert found.headline.endswith(".grad` is None.") and says in found.text


@pytest.mark.parametrize(
    "cell",
    [
        "helper.update(w)",
        "y = w * 2\nhelper.optimize([w], y)",
        "y = w * 2\nhelper.copy(y)",
        "helper.backward(w)",
        "helper.values(w)",
    ],
)
def test_what_a_library_did_is_not_blamed_on_a_name_of_the_line_that_called_it(run, cell, tmp_path, monkeypatch):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "helper.py").write_text(
        "import copy, torch\n"
        "def update(w):\n    w -= 1\n"
        "def optimize(fine, other):\n    torch.optim.SGD([fine[0] * 1], lr=1)\n"
        "def copy(y, copy=copy):\n    copy.deepcopy(y * 1)\n"
        "def backward(w):\n    (w * 2).backward()\n"
        "def values(w):\n    w.numpy()\n"
    )
    monkeypatch.syspath_prepend(library)
    (found, *_) = run(LEAF, "import helper", cell)
    assert found.kind == "refused" and found.tensor is None
    assert not any(fix.edit or fix.verified for fix in found.fixes)


# -- the note under the traceback ----------------------------------------------------------------------


def told(shell, capsys, cell):
    """What is printed under the traceback of a cell."""
    capsys.readouterr()
    shell.run_cell(cell, store_history=True)
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "cell, headline, first_fix",
    [
        ("w.numpy()", "`w` requires grad, and an array has no graph.", "Write `.detach()`"),
        ("w -= 1", "`w -= 1` writes to `w` while a graph is recorded.", "Write to it under"),
        ("w.sum().backward(retain_variables=True)", "`retain_variables` is called `retain_graph` today.", "Write"),
        ("loss = w.sum()\nloss.data[0]", "`loss` has no element [0]: it is one number.", "Write"),
        ("torch.tensor(1, requires_grad=True)", "Integers cannot require grad.", "If it is to be learned"),
    ],
)
def test_an_error_that_no_call_raised_has_its_note_under_the_traceback(shell, run, capsys, cell, headline, first_fix):
    run(LEAF)
    said = told(shell, capsys, cell)
    assert f"✕ {headline}\n" in said and f"  1. {first_fix}" in said
    shell.run_line_magic("graphwidget", "notes off")
    assert told(shell, capsys, cell) == ""


@pytest.mark.parametrize("cell", ["1 / 0", "this is no python", "raise RuntimeError('w.numpy()')"])
def test_an_error_of_another_kind_has_no_note(shell, run, capsys, cell):
    run(LEAF, "w.numpy()")
    assert told(shell, capsys, cell) == ""


def test_an_error_of_a_call_is_explained_once(shell, run, capsys):
    run(LEAF, "loss = w.exp().sum()", "loss.backward()")
    printed = told(shell, capsys, "loss.backward()")
    assert ("needs saved tensors" in printed) is not hasattr(BaseException, "add_note")
