"""A root and its calls keep their hue for life: in every picture, alive or dead, also if a name is computed again."""

from __future__ import annotations

import pytest
from cells import Notebook

from graphwidget.notebook.requests.offers import Offers

SETUP = "t, a = torch.eye(2, requires_grad=True), torch.ones(2, requires_grad=True)"


@pytest.fixture
def notebook():
    notebook = Notebook()
    notebook.run(SETUP)
    yield notebook
    notebook.tracker.stop()


def looks(notebook: Notebook) -> dict[int, int]:
    return {call.n: call.order for call in notebook.tracker.calls}


def roots(notebook: Notebook, offers: Offers) -> dict[str, int]:
    """Return the order of each root in the present picture; `+` marks dead ones."""
    drawing = notebook.tracker.drawing()
    return {
        f"{root.ref.path}{'+' * drawing.snapshot.ghost[root.ref.node]}": root.order for root in offers.update(drawing)
    }


def run_of(snapshot, ref):
    place = snapshot.place_of(ref.node)
    return place and place.run


@pytest.fixture
def offers(notebook):
    offers = Offers()
    offers.follow(notebook.tracker.hues)
    return offers


def test_the_failing_pair_differs_the_older_first(notebook, offers):
    notebook.run("y = t @ a")
    notebook.run("for it in range(2):\n    loss = (t @ (a + y)).exp().sum()\n    loss.backward()")
    assert looks(notebook) == {0: 0, 1: 1}
    assert roots(notebook, offers) == {"loss": 1, "loss+": 0}


@pytest.mark.parametrize("iterations", [5, 40])
def test_the_pair_differs_after_a_long_loop_of_calls_that_were_only_counted(notebook, offers, iterations):
    notebook.run(f"for it in range({iterations}):\n    loss = (t @ a).exp().sum()\n    loss.backward()")
    notebook.run("try: loss.backward()\nexcept RuntimeError: pass")
    assert set(looks(notebook).values()) == {0}  # one root: the second call on the same one
    notebook.run(
        f"y = t @ a\nfor it in range({iterations}):\n    z = (t @ a).exp().sum()\n    z.backward()\n"
        "w = y.exp().sum(); w.backward()\nw = (y * y).sum(); w.backward()"
    )
    older, newer = notebook.tracker.calls[-2:]
    assert newer.result == "raised" and newer.freed_by == older.n and newer.order != older.order
    assert {call.order for call in notebook.tracker.calls[-2 - iterations : -2]} != {-1}


def test_a_name_that_is_computed_anew_looks_as_before(notebook, offers):
    for _ in range(4):
        notebook.run("loss = (t @ a).exp().sum()\nloss.backward()")
        assert roots(notebook, offers)["loss"] == 0
    assert set(looks(notebook).values()) == {0}


def test_a_training_loop_of_two_losses_has_two_looks_without_any_view(notebook):
    notebook.run(
        "for it in range(30):\n    d = (t @ a).exp().sum()\n    d.backward()\n    g = (t @ a).tanh().sum()\n    g.backward()"
    )
    assert [call.order for call in notebook.tracker.calls] == [0, 1] * 30


def test_nothing_changes_from_picture_to_picture(notebook, offers):
    """A former bug: the same call had three hues, after cells that had nothing to do with it."""
    cells = [
        "product = t @ a",
        "total = product.exp().sum()\ntotal.backward()",
        "y = t @ a",
        "for it in range(2):\n    loss = (t @ (a + y)).exp().sum()\n    try: loss.backward()\n    except RuntimeError: pass",
        "x_out = (t @ a).tanh()",
        "total = product.exp().sum()",
        "temp = []\nfor it in range(3):\n    h = (t @ a).exp()\n    temp.append(h)\n    (h.sum() * 2).backward(retain_graph=True)",
        "del loss",
        "try: total.backward()\nexcept RuntimeError: pass",
    ]
    seen: dict[int, int] = {}
    of_roots: dict[tuple[int, int], int] = {}
    for cell in cells:
        notebook.run(cell)
        for n, order in looks(notebook).items():
            assert order >= 0 and seen.setdefault(n, order) == order, (cell, n)
        drawing = notebook.tracker.drawing()
        for root in offers.update(drawing):
            key = (drawing.snapshot.uid[root.ref.node], root.ref.output_nr)
            assert of_roots.setdefault(key, root.order) == root.order, (cell, root.ref.path)
        # Roots of one cell are drawn together.
        newest = max(place.run for place in drawing.snapshot.places)
        together = [root.order for root in offers.update(drawing) if run_of(drawing.snapshot, root.ref) == newest]
        assert len(set(together)) == len(together), cell
    # Pictures of past moments agree with the present one.
    for event in notebook.tracker.events:
        for root in offers.past(event.snapshot) if event.snapshot else ():
            key = (event.snapshot.uid[root.ref.node], root.ref.output_nr)
            assert of_roots.get(key, root.order) == root.order
    # A call and its root agree.
    for call in notebook.tracker.calls:
        if call.graph is not None:
            key = (call.graph.uid[call.roots[0].node], call.roots[0].output_nr)
            assert of_roots.get(key, call.order) == call.order


def test_the_first_two_hues_are_free_again_in_each_section(notebook, offers):
    """Graphs of earlier cells are not drawn with those of later ones: they must not push a failing pair to rare hues."""
    notebook.run("product = (t @ a).sum()\ntotal = (t @ a).exp().sum()\nthird = (t @ a).tanh().sum()")
    assert roots(notebook, offers) == {"product": 0, "total": 1, "third": 2}
    notebook.run("y = t @ a")
    notebook.run("for it in range(2):\n    loss = (t @ (a + y)).exp().sum()\n    loss.backward()")
    assert looks(notebook) == {0: 0, 1: 1}
    assert roots(notebook, offers) == {"product": 0, "total": 1, "third": 2, "loss": 1, "loss+": 0}


def test_roots_of_two_cells_that_share_nodes_differ(notebook, offers):
    notebook.run("z = (t @ a).exp()")
    notebook.run("one = z.sum()")
    notebook.run("two = (z * z).sum()\ntwo.backward(retain_graph=True)")
    notebook.run("three = z.tanh().sum()")
    assert roots(notebook, offers) == {"one": 0, "two": 1, "three": 2}
    assert looks(notebook) == {0: 1}


def test_looking_while_a_cell_runs_changes_nothing(notebook, offers):
    notebook.namespace["look"] = lambda: roots(notebook, offers)
    notebook.run("y = t @ a")
    notebook.run(
        "for it in range(2):\n    loss = (t @ (a + y)).exp().sum()\n    look()\n    loss.backward()\n    look()"
    )
    assert looks(notebook) == {0: 0, 1: 1}


def test_a_view_without_a_tracker_keeps_looks_too():
    import torch

    from graphwidget.notebook.sources import TensorSource

    w = torch.ones(2, requires_grad=True)
    one, two = (w * 2).sum(), (w * 3).exp().sum()
    offers = Offers()
    both = TensorSource([one, two], None, {"one": one, "two": two}, {})
    assert [root.order for root in offers.update(both.drawing())] == [0, 1]
    del one
    assert [root.order for root in offers.update(both.drawing())] == [1]


def test_what_is_remembered_is_bounded(notebook, monkeypatch):
    from graphwidget.capture.calls import hues

    monkeypatch.setattr(hues, "MAX_KNOWN", 10)
    notebook.run("kept = [(t @ a).exp().sum() for _ in range(4)]\nlost = (t @ a).sum()")
    for k in range(30):
        notebook.run(f"loss{k} = (t @ a).exp().sum()\nloss{k}.backward()\ndel loss{k}")
    known = notebook.tracker.hues
    assert len(known._orders) <= 10 and len(known._names) <= 10 and not notebook.tracker.problems
    assert all(call.order >= 0 for call in notebook.tracker.calls)


BODY = "z = (t @ a).exp()\none = z.sum()\ntwo = (z * z).sum()\nthree = z.tanh().sum()\nfour = z.exp().sum()"


@pytest.mark.parametrize("pair", [("one", "three"), ("three", "two"), ("four", "three"), ("one", "two")])
def test_a_failing_pair_among_many_roots_has_the_first_two_hues(notebook, offers, pair):
    notebook.run("earlier = (t @ a).sum()\nearlier.backward()")
    notebook.run(BODY)
    notebook.run("one.backward(retain_graph=True)")
    before = roots(notebook, offers)
    for name in pair:
        notebook.run(f"try: {name}.backward()\nexcept RuntimeError: pass")
    older, newer = notebook.tracker.calls[-2:]
    assert newer.result == "raised" and newer.freed_by == older.n
    assert {older.order, newer.order} == {0, 1}
    after = roots(notebook, offers)
    assert (after[pair[0]], after[pair[1]]) == (older.order, newer.order)
    names = {"one", "two", "three", "four"}
    assert sorted(after[name] for name in names) == [0, 1, 2, 3], "still four hues"
    assert after["earlier"] == before["earlier"], "a graph that is not drawn with them keeps its hue"
    # The first call on `one` looks as its root does, and as in the picture of the past.
    first = next(call for call in notebook.tracker.calls if call.retain_graph)
    assert first.order == after["one"]
    for event in notebook.tracker.events:
        for root in offers.past(event.snapshot) if event.snapshot else ():
            assert root.order == after.get(root.ref.path, root.order)


def test_one_root_that_is_called_twice_has_the_first_hue(notebook, offers):
    notebook.run(BODY)
    notebook.run("four.backward()")
    notebook.run("try: four.backward()\nexcept RuntimeError: pass")
    assert set(looks(notebook).values()) == {0}
    assert roots(notebook, offers)["four"] == 0 and roots(notebook, offers)["one"] == 3


def test_after_a_failing_pair_later_calls_of_a_loop_look_as_their_roots(notebook, offers):
    notebook.run("one, two = t.exp().sum(), t.tanh().sum()")
    loop = "for it in range(20):\n    p, q, r = ((t @ a).exp().sum() for _ in range(3))\n    r.backward()"
    notebook.run(loop)
    notebook.run("try: r.backward()\nexcept RuntimeError: pass")
    notebook.run(loop)
    assert notebook.tracker.calls[-1].order == roots(notebook, offers)["r"]
