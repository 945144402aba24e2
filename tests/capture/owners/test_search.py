"""The search for owners changes nothing, runs no foreign code, and ends in time."""

from __future__ import annotations

import gc
import sys
import threading
import types
import warnings
import weakref

import pytest
import torch

from graphwidget.capture.owners import search as owners


@pytest.fixture
def x() -> torch.Tensor:
    return torch.randn(3, requires_grad=True)


# ---------------------------------------------------------------- searching changes nothing


def test_no_foreign_code_runs(x):
    def explode(*args, **kwargs):
        raise AssertionError("foreign code ran")

    class Meta(type):
        __instancecheck__ = __subclasscheck__ = __getattribute__ = explode

    class Hostile(metaclass=Meta):
        __class__ = property(explode)
        __dict__ = property(explode)
        __getattr__ = __len__ = __iter__ = __bool__ = __eq__ = __hash__ = __repr__ = __contains__ = explode

    class Stack(list):
        __iter__ = __len__ = __getitem__ = __bool__ = __getattribute__ = explode

    class Table(dict):
        __iter__ = __len__ = __getitem__ = items = keys = values = __bool__ = explode

    class Sub(torch.Tensor):
        requires_grad = grad_fn = grad = is_leaf = property(explode)
        __torch_function__ = classmethod(explode)

    hostile = object.__new__(Hostile)
    stack, table = Stack(), Table()
    list.append(stack, x)
    dict.__setitem__(table, "k", x)
    sub = torch.Tensor._make_subclass(Sub, torch.ones(2), True)
    search = owners.find({"a": hostile, "b": stack, "c": table, "d": sub, "e": Hostile, "f": [hostile]})
    assert [h.path for h in search.holdings] == ["d", "b[0]", "c['k']"]


def test_nothing_warns_and_a_stale_view_keeps_its_history(x):
    base = x * 1
    view = base[0:2]
    base.mul_(2)
    hooked = base[1:]
    before = torch._C._autograd._get_sequence_nr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = owners.find({"view": view, "base": base, "hooked": hooked, "y": x * 2})
    assert {h.path for h in search.holdings} == {"view", "base", "hooked", "y"}
    assert torch._C._autograd._get_sequence_nr() == before + 1, "only `x * 2` made a node"


def test_the_locals_of_a_frame_are_not_kept_alive_by_having_been_read():
    def step():
        act = torch.ones(2, requires_grad=True) * 2
        gone = weakref.ref(act)
        owners.find({}, frames=[sys._getframe()])
        del act
        return gone() is None

    def with_locals():
        act = torch.ones(2, requires_grad=True) * 2
        mine = locals()
        owners.find({}, frames=[sys._getframe()])
        return mine["act"] is act

    assert step()
    assert with_locals()


def test_a_dropped_search_keeps_nothing(x):
    y = x * 2
    gone = weakref.ref(y)
    namespace = {"y": [y], "Out": {1: y}}
    search = owners.find(namespace)
    del search, y
    namespace.clear()
    assert gone() is None


def test_reading_an_object_leaves_it_without_a_dict_of_its_own():
    class Plain:
        def __init__(self):
            self.a, self.b = 1, "b"

    plain = Plain()
    before = gc.get_referents(plain)
    owners.find({"plain": plain})
    assert gc.get_referents(plain) == before


# ---------------------------------------------------------------- bounds


def test_a_container_that_changes_meanwhile_is_said_and_the_rest_is_found(x):
    table = {i: object() for i in range(200_000)}
    stop = threading.Event()

    def churn():
        i = 0
        while not stop.is_set():
            table[f"new{i}"] = i
            i += 1

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        search = owners.find({"table": table, "y": [x * 2]}, budget_s=1.0)
    finally:
        stop.set()
        thread.join()
    assert [h.path for h in search.holdings] == ["y[0]"]


def test_deep_and_cyclic_structures_end_and_are_said(x):
    loop: list = [x * 2]
    loop.append(loop)
    deep: list = [x * 3]
    for _ in range(100_000):
        deep = [deep]
    search = owners.find({"loop": loop, "deep": deep})
    assert [h.path for h in search.holdings] == ["loop[0]"]
    assert any("did not look deeper" in note for note in search.notes)
    while isinstance(deep, list):  # freed step by step: freeing it at once is deep recursion
        deep = deep[0]


def test_large_ordinary_data_does_not_hide_a_tensor_and_is_not_read_to_the_end(x):
    class Record:
        def __init__(self, i):
            self.i, self.text = i, "r"

    namespace = {
        "a_numbers": list(range(3_000_000)),
        "b_records": {i: Record(i) for i in range(100_000)},
        "c_lists": [[float(i)] for i in range(100_000)],
        "zzz": {"deep": [types.SimpleNamespace(h=x * 2)]},
    }
    search = owners.find(namespace)
    assert [h.path for h in search.holdings] == ["zzz['deep'][0].h"]
    assert search.notes, "it stopped before it had seen everything, and says so"
    assert any("elements of `a_numbers`" in note for note in search.notes)
    assert any("of 100,000 elements of `c_lists`" in note for note in search.notes)


def test_a_tensor_in_a_long_list_of_numbers_is_found_where_the_sample_meets_it(x):
    numbers: list = list(range(100_000))
    numbers[-1] = x * 2
    search = owners.find({"numbers": numbers}, budget_s=5)
    assert [h.path for h in search.holdings] == ["numbers[99999]"]


def test_a_tensor_with_very_many_names_keeps_a_few(x):
    search = owners.find({"many": [x] * 1000}, budget_s=5)
    assert len(search.holdings) == owners.MAX_PATHS
