"""Every public name has a docstring with an example, and every example runs."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import graphwidget

NAMES = graphwidget.__all__


def members(owner: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class defines itself."""
    for name, member in vars(owner).items():
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


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_a_public_name_run(name: str) -> None:
    thing = getattr(graphwidget, name)
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    for example in finder.find(thing, name, globs={}):
        runner.run(example, out=said.append)
    assert runner.tries and not runner.failures, "".join(said)
