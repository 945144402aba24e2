"""Errors of calls that the user's code makes while the engine runs: in a hook, or in the backward of a Function."""

from told import findings_of

from graphwidget.diagnosis.source.edits.text_edit import apply

LEAF = "w = torch.ones(3, requires_grad=True)"


def function(body: str) -> str:
    return (
        "class Own(torch.autograd.Function):\n"
        "    @staticmethod\n    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x * 2\n"
        f"    @staticmethod\n    def backward(ctx, g):\n{body}"
    )


def test_a_hook_that_runs_one_graph_twice_is_told_with_the_line_and_an_edit() -> None:
    solve = (
        "z = w.exp()\ninner = w.sin().sum()\n"
        "def hook(g):\n    for _ in range(2):\n        g = g + torch.autograd.grad(inner, w)[0]\n    return g\n"
        "z.register_hook(hook)\nz.sum().backward()"
    )
    (found,) = findings_of(LEAF, solve)
    assert found.kind == "second_backward" and "the same line freed" in found.headline
    assert found.failed_at is not None and found.failed_at.line == 5
    (fix,) = found.fixes
    assert fix.id == "retain_graph_earlier_call" and not fix.verified
    assert "torch.autograd.grad(inner, w, retain_graph=True)" in apply(solve, fix.edits)


def test_another_line_inside_an_earlier_call_may_have_freed_it() -> None:
    cell = (
        "extra = w.exp().sum()\n"
        "def first(g):\n    extra.backward()\n"
        "def second(g):\n    extra.backward()\n"
        "a, b = w * 1, w * 2\na.register_hook(first)\nb.register_hook(second)\n"
        "a.sum().backward()\nb.sum().backward()"
    )
    (found,) = findings_of(LEAF, cell)
    assert "(In[2], line 3)" in found.text and found.cause is not None and found.cause.line == 3
    assert found.fixes[0].at == (2, 3)


def test_a_graph_that_an_ordinary_call_freed_has_the_fixes_of_a_second_backward() -> None:
    cell = (
        "reg = w.exp().sum()\nloss = (w * w).sum() + reg\nloss.backward()\nout = w.sigmoid()\n"
        "out.register_hook(lambda g: reg.backward())\nout.sum().backward()"
    )
    (found,) = findings_of(LEAF, cell)
    assert found.freed_by == 0 and "starts the engine again" in found.text
    assert found.fixes[0].id == "retain_graph_earlier_call" and found.fixes[0].at == (2, 3)


def test_what_a_backward_computes_has_no_graph_unless_grad_mode_is_switched_on() -> None:
    own = function(
        "        x, = ctx.saved_tensors\n        y = x.sin()\n        return torch.autograd.grad(y, x, g)[0]\n"
    )
    (found,) = findings_of(f"{LEAF}\n{own}", "Own.apply(w).sum().backward()")
    assert found.kind == "no_grad" and "`y` has no graph" in found.headline and "grad mode off" in found.text
    changed = apply(f"{LEAF}\n{own}", found.fixes[0].edits)
    assert "        with torch.enable_grad():\n            x, = ctx.saved_tensors\n            y = x.sin()\n" in changed
    assert not findings_of(changed, "Own.apply(w).sum().backward()")


def test_what_is_put_under_grad_mode_begins_behind_the_documentation() -> None:
    text = '        """Compute.\n\n        Then differentiate.\n        """\n'
    own = f"{LEAF}\n" + function(
        f"{text}        x, = ctx.saved_tensors\n        x = x.detach().requires_grad_()\n        y = x.sin()\n"
        "        y.backward(g)\n        return x.grad\n"
    )
    (found,) = findings_of(own, "Own.apply(w).sum().backward()")
    changed = apply(own, found.fixes[0].edits)
    assert f"{text}        with torch.enable_grad():\n            x, = ctx.saved_tensors\n" in changed
    assert not findings_of(changed, "Own.apply(w).sum().backward()")


def test_what_an_inner_graph_saved_was_modified_by_a_line_of_the_backward() -> None:
    body = (
        "        x, = ctx.saved_tensors\n        with torch.enable_grad():\n            x = x.detach().requires_grad_()\n"
        "            y = x.exp()\n            y += 1\n            y.backward(g)\n        return x.grad\n"
    )
    (found,) = findings_of(f"{LEAF}\n{function(body)}", "Own.apply(w).sum().backward()")
    assert found.kind == "inplace" and found.tensor == "y" and "`y += 1`" in found.text
    assert found.modified_at is not None and found.fixes[0].edits


def test_inner_calls_are_no_calls_of_the_record_and_change_nothing() -> None:
    cell = "inner = w.sin().sum()\nz = w.exp()\nz.register_hook(lambda g: g + torch.autograd.grad(inner, w)[0])\nz.sum().backward()"
    assert not findings_of(LEAF, cell)
