"""Objects of Python's own library that are made of what a program hands over hold tensors like any container."""

from __future__ import annotations

import functools
import logging
import threading
from concurrent.futures import Future
from typing import Any

import pytest
import torch

from graphwidget.capture.owners import search as owners


def _record(loss: torch.Tensor) -> object:
    return logging.LogRecord("train", logging.INFO, __file__, 1, "step %d: %s", (3, loss), None)


def _future(loss: torch.Tensor) -> object:
    future: Future[Any] = Future()
    future.set_result(loss)
    return future


def _thread(loss: torch.Tensor) -> object:
    return threading.Thread(target=print, args=(loss,))


@pytest.mark.parametrize(
    "make, path",
    [
        (_record, "kept[0].args[1]"),
        (_future, "kept[0]._result"),
        (_thread, "kept[0]._args[0]"),
        (lambda loss: functools.partial(print, 1, loss), "kept[0].args[1]"),
        (lambda loss: ValueError("spike", loss), "kept[0].args[1]"),
    ],
)
def test_what_they_hold_is_found(make: Any, path: str) -> None:
    loss = torch.ones(2, requires_grad=True).sum()
    found = owners.find({"kept": [make(loss)]}, budget_s=1)
    assert [one.path for one in found.holdings if one.tensor is loss] == [path]


def test_the_loggers_of_all_libraries_are_not_looked_through() -> None:
    logger = logging.getLogger("graphwidget.tests.of.objects")
    far = logging.getLogger("another.library")
    far.kept = torch.ones(2, requires_grad=True)  # type: ignore[attr-defined]
    near = logger.near = torch.ones(2, requires_grad=True)  # type: ignore[attr-defined]
    try:
        found = owners.find({"log": logger}, budget_s=1)
        assert [one.path for one in found.holdings] == ["log.near"] and found.holdings[0].tensor is near
    finally:
        del far.kept, logger.near  # type: ignore[attr-defined]
