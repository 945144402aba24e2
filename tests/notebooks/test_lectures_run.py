"""Each lecture runs from top to bottom, and what its text says is what the kernel prints."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from lectures import NAMES, Call, Cell, Lecture

PROGRAMS = Path(__file__).resolve().parents[1] / "scenarios" / "programs"
MEASURED: dict[str, Any] = {
    name: truth for theme in PROGRAMS.glob("*/measured.json") for name, truth in json.loads(theme.read_text()).items()
}
_QUANTITY = re.compile(r"\b(\d[\d,]*) (B|kB|MB|bytes|nodes|leaves)\b")


@pytest.fixture(params=NAMES, scope="module")
def lecture(request: pytest.FixtureRequest) -> Lecture:
    read = Lecture.read(request.param)
    examples = {tag for cell in read.code for tag in cell.tags if tag in MEASURED}
    read.run({name: MEASURED[name]["expect"] for name in examples})
    return read


def test_what_a_lecture_says_is_so(lecture: Lecture) -> None:
    """One test for each lecture, which runs once: all that is wrong with it is listed."""
    wrong = [
        *_cells_that_raise(lecture),
        *_quotes(lecture),
        *_quantities(lecture),
        *_findings(lecture),
        *_examples(lecture),
    ]
    assert not wrong, "\n".join(wrong)


def _cells_that_raise(lecture: Lecture) -> list[str]:
    return [
        f"{cell.source}: raised {cell.raised}: {cell.printed[:200]}"
        for cell in lecture.code
        if (cell.raised is not None) != ("raises-exception" in cell.tags)
    ]


def _quotes(lecture: Lecture) -> list[str]:
    return [f"{quote!r} is not in {said!r}" for quote, said in lecture.quoted() if quote not in said]


def _quantities(lecture: Lecture) -> list[str]:
    """A number of bytes or nodes in the text is one that a cell has printed, or asserts."""
    asserted = [line for cell in lecture.code for line in cell.source.splitlines() if "assert" in line or "==" in line]
    known = " ".join([*(cell.printed for cell in lecture.code), *asserted])
    return [
        f"{number} {unit}: no cell says so"
        for cell in lecture.cells
        if cell.kind == "markdown"
        for number, unit in _QUANTITY.findall(cell.prose)
        if not re.search(rf"\b{number}\b", known)
    ]


def _findings(lecture: Lecture) -> list[str]:
    """Torch's errors are explained, with a first fix; a cell that runs brings up no error."""
    wrong, before = [], frozenset[tuple[str, str, str]]()
    for cell in lecture.code:
        new = {finding for finding in cell.findings if finding[0] == "error"} - before
        if cell.raised is None and new:
            wrong.append(f"{cell.source}: after it the tool says {new}")
        if cell.raised is not None and cell.raised != "ValueError" and not (new and " 1. " in cell.printed):
            wrong.append(f"{cell.source}: not explained: {cell.printed}")
        before |= new
    return wrong


def _examples(lecture: Lecture) -> list[str]:
    """A cell that has the name of a scenario among its tags does what was measured of it: the same calls and errors."""
    wrong = []
    for scenario in {tag for cell in lecture.code for tag in cell.tags if tag in MEASURED}:
        cells, truth = lecture.of_scenario(scenario), MEASURED[scenario]
        made, measured = _as_measured(lecture.calls_of(cells)), _measured(truth)
        if made != measured:
            wrong.append(f"{scenario}: {made} instead of {measured}")
        raised, errors = [c.raised for c in cells if c.raised], [error["type"] for error in truth["errors"]]
        if raised != errors:
            wrong.append(f"{scenario}: {raised} instead of {errors}")
        wrong += [f"{scenario}: {text} does not hold" for text in _not_holding(cells)]
    return wrong


def _not_holding(cells: list[Cell]) -> list[str]:
    return [text for cell in cells for text, holds in cell.expected.items() if not holds]


def _as_measured(calls: list[Call]) -> list[tuple[object, ...]]:
    return _once((*call.roots, call.retains, call.result, call.failed_node) for call in calls)


def _measured(truth: dict[str, Any]) -> list[tuple[object, ...]]:
    return _once(
        (*call["roots"], call["retain_graph"], call["result"], call.get("failed_node"))
        for call in truth["backward_calls"]
    )


def _once(calls: Any) -> list[tuple[object, ...]]:
    """Equal calls that follow one another count once: a loop may be shorter or longer."""
    return [call for call, _ in groupby(calls)]
