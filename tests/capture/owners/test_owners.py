"""The paths that hold a tensor: each one is true, whatever the structure. That the search is safe: test_search.py."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import itertools
import sys
import types

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from graphwidget.capture.owners import search as owners


def names(namespace: dict, **options: object) -> dict[str, str]:
    """Return path -> kind for everything found."""
    return {h.path: h.kind for h in owners.find(namespace, **options).holdings}


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(3, requires_grad=True)


# ---------------------------------------------------------------- which paths


def test_a_variable_and_a_leaf_are_found_and_plain_values_are_not(x):
    search = owners.find({"x": x, "y": x * 2, "z": torch.ones(3), "n": 3})
    assert [(h.path, h.kind, h.is_leaf) for h in search.holdings] == [
        ("x", "variable", True),
        ("y", "variable", False),
    ]


def test_elements_of_every_builtin_container_are_found(x):
    pair = collections.namedtuple("pair", "first second")
    namespace = {
        "a": [1, [x * 2]],
        "b": (x * 3,),
        "c": {"k": x * 4, ("p", 1): x * 5, object(): x * 6},
        "d": {x * 7},
        "e": collections.deque([0, x * 8]),
        "f": pair(0, x * 9),
        "g": collections.OrderedDict(k=x * 10),
        "h": frozenset([x * 11]),
        "i": {x * 12: 1},
    }
    assert set(names(namespace)) == {
        "a[1][0]",
        "b[0]",
        "c['k']",
        "c[('p', 1)]",
        "list(c.values())[2]",
        "list(d)[0]",
        "e[1]",
        "f.second",
        "g['k']",
        "list(h)[0]",
        "list(i)[0]",
    }


def test_attributes_slots_and_shadowed_attributes_are_spelled_so_that_they_evaluate(x):
    @dataclasses.dataclass
    class Data:
        field: object

    class Slots:
        __slots__ = ("empty", "full")

    class Shadow:
        hidden = property(lambda self: 1 / 0)

    slots, shadow = Slots(), Shadow()
    slots.full = x * 2
    shadow.__dict__["hidden"] = x * 3
    namespace = {"data": Data(x * 4), "slots": slots, "shadow": shadow, "Slots": Slots}
    found = owners.find(namespace).holdings
    assert {h.path for h in found} == {"data.field", "slots.full", "vars(shadow)['hidden']"}
    assert all(eval(h.path, dict(namespace)) is h.tensor for h in found)


def test_modules_are_spelled_as_users_write_them(x):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2, bias=False)
            self.hidden = (x * 2,)

    model = nn.ModuleDict({"a": nn.Sequential(nn.Linear(2, 2, bias=False), Block())})
    plist = nn.ParameterList([nn.Parameter(torch.ones(1))])
    listed = nn.ModuleList([nn.Linear(1, 1, bias=False)])
    namespace = {"model": model, "plist": plist, "listed": listed}
    found = owners.find(namespace).holdings
    assert {h.path for h in found} == {
        "model['a'][0].weight",
        "model['a'][1].fc.weight",
        "model['a'][1].hidden[0]",
        "plist[0]",
        "listed[0].weight",
    }
    assert all(eval(h.path, dict(namespace)) is h.tensor for h in found)


def test_a_sequential_with_a_gap_in_its_keys_is_spelled_by_position():
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Tanh(), nn.Linear(1, 1, bias=False))
    del net[0]
    net.register_module("7", nn.Linear(1, 1, bias=False))
    found = owners.find({"net": net}).holdings
    assert {h.path: eval(h.path, {"net": net}) is h.tensor for h in found} == {
        "net[1].weight": True,
        "net[2].weight": True,
    }


def test_objects_of_libraries_are_looked_into(x):
    pi = torch.distributions.Bernoulli(torch.sigmoid(x))
    pi.log_prob(torch.ones(3))
    assert {"pi.probs", "pi.logits"} <= set(names({"pi": pi}))


def test_what_code_holds_is_found(x):
    shared = x * 2

    def loss_of():
        return shared

    def generate():
        held = x * 3
        yield held

    def default(n=1, h=x * 4):
        return h

    gen = generate()
    next(gen)
    net = nn.Sequential(nn.Linear(3, 3, bias=False))
    feats = [x * 5]
    net[0].register_forward_hook(lambda m, i, o: feats.append(o))

    class Runner:
        def __init__(self):
            self.h = x * 6

        def step(self):
            return self.h

    @functools.lru_cache
    def cached(n):
        return x * n

    cached(7)
    found = names(
        {
            "loss_of": loss_of,
            "gen": gen,
            "default": default,
            "net": net,
            "step": Runner().step,
            "part": functools.partial(print, x * 8, k=x * 9),
            "cached": cached,
        }
    )
    assert found["loss_of.__closure__[shared]"] == "closure"
    assert found["gen.gi_frame[held]"] == "generator"
    assert found["default.__defaults__[h]"] == "closure"
    assert found["step.__self__.h"] == "attribute"
    assert found["part.args[0]"] == found["part.keywords['k']"] == "element"
    assert any(p.startswith("net[0]._forward_hooks[") and p.endswith("[feats][0]") for p in found), found
    assert any(p.startswith("cached -> ") and kind == "other" for p, kind in found.items())


@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_gradient_with_a_graph_is_held_by_its_leaf(x):
    x.exp().sum().backward(create_graph=True)
    assert names({"x": x}) == {"x": "variable", "x.grad": "grad"}


def test_a_local_of_a_live_frame_and_the_cells_own_frame():
    def step():
        act = torch.ones(2, requires_grad=True) * 2
        return names({}, frames=[sys._getframe()]), act

    assert step()[0] == {"step:act": "frame"}
    scope: dict = {"find": owners.find, "sys": sys, "torch": torch}
    exec("y = torch.ones(1, requires_grad=True)\nfound = find({}, frames=[sys._getframe()])", scope)
    assert scope["found"].holdings == []


def test_the_output_history_comes_after_variables_and_a_number_only_where_out_has_it_not(x):
    y, z = x * 2, x * 3
    namespace = {"y": y, "Out": {4: y, 5: [z]}, "_": [z], "__": y, "_4": y, "_6": x * 4}
    found = names(namespace)
    assert list(found)[0] == "y"
    assert {p for p, kind in found.items() if kind == "out"} == {"__", "Out[4]", "Out[5][0]", "_[0]", "_6"}


def test_the_last_traceback_holds_the_locals_of_the_frames_in_it(x, monkeypatch):
    def step():
        act = x.exp()
        raise ValueError(act.shape)

    try:
        step()
    except ValueError as error:
        monkeypatch.setattr(sys, "last_traceback", error.__traceback__, raising=False)
        monkeypatch.setattr(sys, "last_value", error, raising=False)
    assert names({}) | {"sys.last_traceback: act": "traceback"} == names({})
    assert names({}, last_error=False) == {}


def test_the_last_execution_result_is_named_only_where_nothing_else_is(x):
    result = types.SimpleNamespace(result=x * 2, error_in_exec=None)
    shell = types.SimpleNamespace(last_execution_result=result)
    path = "get_ipython().last_execution_result.result"
    assert names({}, shell=shell) == {path: "out"}
    assert names({"box": [[result.result]]}, shell=shell) == {"box[0][0]": "element"}


def test_hidden_names_and_names_of_ipython_are_left_out(x):
    assert names({"y": x * 2, "get_ipython": lambda h=x: h, "In": [x]}, hidden={"y"}) == {}


def test_a_tensor_is_found_again_by_its_path_without_evaluating(x):
    search = owners.find({"a": [x]})
    assert search.tensor_at("a[0]") is x
    assert search.tensor_at("__import__('os').abort()") is None


# ---------------------------------------------------------------- true for any structure


def _structures() -> st.SearchStrategy:
    leaves = st.sampled_from(["leaf", "node", "plain", 0, "text", None, 1.5])
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.tuples(inner, inner),
            st.dictionaries(
                st.one_of(st.text(max_size=3), st.integers(), st.booleans(), st.floats()), inner, max_size=4
            ),
            st.builds(lambda v: types.SimpleNamespace(v=v), inner),
            st.builds(lambda v: collections.deque(v), st.lists(inner, max_size=3)),
        ),
        max_leaves=20,
    )


def _fill(shape: object, made: list) -> object:
    """Return the structure with its words replaced by tensors; `made` collects those that require grad."""
    if shape in ("leaf", "node") and isinstance(shape, str):
        leaf = torch.ones(1, requires_grad=True)
        made.append(leaf if shape == "leaf" else leaf * 2)
        return made[-1]
    if isinstance(shape, str) and shape == "plain":
        return torch.ones(1)
    if isinstance(shape, dict):
        return {k: _fill(v, made) for k, v in shape.items()}
    if isinstance(shape, types.SimpleNamespace):
        return types.SimpleNamespace(v=_fill(shape.v, made))
    if isinstance(shape, (list, tuple, collections.deque)):
        return type(shape)([_fill(v, made) for v in shape])
    return shape


@settings(max_examples=150)
@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9]{0,4}", fullmatch=True), _structures(), max_size=5))
def test_every_path_evaluates_to_its_tensor_and_every_tensor_has_a_path(shapes):
    import keyword

    made: list = []
    namespace = {name: _fill(shape, made) for name, shape in shapes.items() if not keyword.iskeyword(name)}
    search = owners.find(namespace, out=False, last_error=False, budget_s=5)
    for holding in search.holdings:
        assert holding.is_expression
        assert eval(holding.path, dict(namespace)) is holding.tensor, holding.path
    assert {id(t) for t in made} == {id(h.tensor) for h in search.holdings}
    assert search.notes == []


def test_what_is_large_comes_after_what_is_small(x, monkeypatch):
    """The clock ticks once for each object visited, so the result does not depend on the machine."""
    monkeypatch.setattr(owners, "perf_counter", functools.partial(next, itertools.count()))
    monkeypatch.setattr(owners, "thread_time", functools.partial(next, itertools.count(step=1000)))
    large = {"net": nn.Sequential(*[nn.Linear(2, 2) for _ in range(300)]), "rows": [[i] for i in range(1000)]}
    small = {f"some_more_{i}": [[i]] for i in range(9)}
    search = owners.find({**large, **small, "kept_to_the_end": {"deep": [x * 2]}}, last_error=False, budget_s=24)
    assert "kept_to_the_end['deep'][0]" in [h.path for h in search.holdings]
    assert any("`net`" in note or "`net[" in note for note in search.notes)


def test_what_only_private_attributes_of_a_library_lead_to_has_the_name_of_its_class(x):
    """A trainer of another package keeps the user's model behind attributes that nobody writes."""

    class Net:
        def __init__(self):
            self.losses = [x * 2]

    trainer = argparse.Namespace()  # any class that is not the program's own
    trainer._connector = types.SimpleNamespace(model=Net())
    (kept,) = owners.find({"trainer": trainer}).holdings
    assert (kept.path, kept.is_expression) == ("Net(…).losses[0]", False)
    kept = owners.find({"trainer": trainer, "net": trainer._connector.model}).holdings[0]
    assert (kept.path, kept.is_expression) == ("net.losses[0]", True)
