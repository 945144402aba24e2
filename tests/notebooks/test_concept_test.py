"""The concept test in `notebooks/README.md`: fifteen questions, and each answer runs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lectures import FOLDER, NAMES

TEXT = (FOLDER / "README.md").read_text()
QUESTIONS, ANSWERS = TEXT.split("### Answers\n")
ANSWER = re.compile(r"^\*\*(\d+) ([abc])\.\*\* (.+?)\n```python\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
SETUP = ANSWERS.split("```python\n")[1].split("```")[0]
FOUND = {int(number): (choice, reason, code) for number, choice, reason, code in ANSWER.findall(ANSWERS)}


def test_there_are_fifteen_questions_with_three_choices_and_an_answer_each() -> None:
    questions = re.findall(r"^(\d+)\. \*\*(.+?)\*\* (.+)$", QUESTIONS, re.MULTILINE)
    assert [int(number) for number, *_ in questions] == list(range(1, 16)) == list(FOUND)
    for _, _, choices in questions:
        assert re.findall(r"\(([a-z])\) ", choices) == ["a", "b", "c"]
    assert {choice for choice, *_ in FOUND.values()} == {"a", "b", "c"}


@pytest.mark.parametrize("number", FOUND)
def test_what_shows_the_answer_runs(number: int) -> None:
    names: dict[str, Any] = {"__name__": "answers"}
    exec(SETUP, names)
    code = FOUND[number][2]
    assert "assert" in code or number == 5, "three calls that run are what is to be shown"
    exec(code, names)


def test_every_lecture_is_in_the_table() -> None:
    linked = re.findall(r"\]\(([^)]+\.ipynb)\)", QUESTIONS)
    assert linked == NAMES
