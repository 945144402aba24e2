"""Several views of one tensor: where they are made, and their forms by index."""

import ast

import torch

from graphwidget.diagnosis.source.in_place.pieces import pieces_of


def found_for(name: str, text: str, *others: str, tensors: str = "x row"):
    line = len(text.splitlines())
    return pieces_of((text, *others), line, name, lambda one: one in tensors.split())


def test_the_views_are_found_through_the_forms_of_a_loop() -> None:
    for text, made in (
        ("for t in x:\n    t += 1", "x"),
        ("for i, (t, m) in enumerate(zip(x, means)):\n    t += m", "x"),
        ("for m, t in zip(means, x[0]):\n    t += m", "x[0]"),
        ("for t in torch.split(x, 2):\n    t += 1", "torch.split(x, 2)"),
        ("rows = list(x.unbind(1))\nfor t in rows:\n    t += 1", "x.unbind(1)"),
        ("rows = list(x)\nfor t in reversed(rows):\n    t += 1", "x"),
        ("[t.add_(m) for t, m in zip(x, means)]", "x"),
        ("s, t = x\nt += 1", "x"),
        ("for row in x:\n    t = row[:2]\n    t += 1", "x"),
        ("t = x.chunk(2)[0]\nt += 1", "x.chunk(2)"),
        ("def f(x):\n    for t in x:\n        t += 1", "x"),
    ):
        found = found_for("t", text)
        assert found is not None and ast.unparse(found.made) == made, text


def test_the_views_of_a_list_of_another_cell_are_found() -> None:
    found = found_for("rows[0]", "rows[0] += 1", "rows = x.unbind(0)")
    assert found is not None and ast.unparse(found.made) == "x.unbind(0)" and found.text == "rows = x.unbind(0)"


def test_elements_of_what_may_be_no_tensor_are_none() -> None:
    for text in ("for t in batches:\n    t += 1", "for t, u in x:\n    t += 1", "t, u = f(x), 2\nt += 1", "t += 1"):
        assert found_for("t", text) is None, text
    found = found_for("t", "for t in net(x):\n    t += 1")
    assert found is not None and not found.by_index and not found.joined("rows")


def test_the_forms_have_the_same_values() -> None:
    x = torch.arange(60.0).reshape(5, 4, 3)
    for made in (
        "x",
        "x[1]",
        "x.unbind(1)",
        "torch.unbind(x, dim=-1)",
        "x.split(2)",
        "x.split(2, dim=1)",
        "x.split(1 + 1, -1)",
        "torch.chunk(x, 2)",
        "x.chunk(3, dim=1)",
        "x.chunk(chunks=2, dim=-1)",
    ):
        found = found_for("t", f"for t in {made}:\n    t += 1")
        assert found is not None and found.by_index, made
        views, wanted = eval(found.by_index, {"x": x}), list(eval(made, {"x": x, "torch": torch}))
        assert len(views) == len(wanted) and all(map(torch.equal, views, wanted)), (made, found.by_index)
        joined = eval(found.joined("rows"), {"rows": wanted, "torch": torch})
        assert torch.equal(joined, eval(ast.unparse(found.whole), {"x": x})), made


def test_a_form_that_would_compute_the_tensor_again_is_not_written() -> None:
    for made in ("f(x).unbind(0)", "x.split(sizes, 1)", "x.split([1, 2])", "x.hsplit(2)", "x.chunk(2, dim=d)"):
        found = found_for("t", f"for t in {made}:\n    t += 1")
        assert found is not None and not found.by_index, made
