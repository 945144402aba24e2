"""Every public name has a docstring with an example, and every example runs."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import graphwidget
from graphwidget.exports.formats import FORMATS

NAMES = graphwidget.__all__


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, also those of a base class of ours."""
    bases = [base for base in owner.__mro__ if base.__module__.startswith("graphwidget.")]
    for name, member in (pair for base in bases for pair in vars(base).items()):
        if not name.startswith("_") and (callable(member) or isinstance(member, (property, staticmethod, classmethod))):
            yield name, member
        elif not name.startswith("_") and type(member).__name__ == "cached_property":
            yield name, member


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_has_an_example(name: str) -> None:
    text = inspect.getdoc(getattr(graphwidget, name)) or ""
    assert "\nExamples\n--------\n>>> " in text


@pytest.mark.parametrize("name", [name for name in NAMES if isinstance(getattr(graphwidget, name), type)])
def test_the_methods_of_a_public_class_have_docstrings(name: str) -> None:
    owner = getattr(graphwidget, name)
    assert [member for member, value in members(owner) if not inspect.getdoc(value)] == []


@pytest.mark.parametrize("name", ["export", *(f"to_{name}" for name in FORMATS)])
def test_an_export_has_an_example(name: str) -> None:
    assert "\nExamples\n--------\n>>> " in (inspect.getdoc(getattr(graphwidget.Snapshot, name)) or "")


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_public_name_run(name: str) -> None:
    thing = getattr(graphwidget, name)
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    homes = (
        [base for base in thing.__mro__ if base.__module__.startswith("graphwidget.")]
        if isinstance(thing, type)
        else [thing]
    )
    for example in (found for home in homes for found in finder.find(home, name, globs={})):
        runner.run(example, out=said.append)
    assert runner.tries and not runner.failures, "".join(said)
