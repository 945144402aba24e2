"""Every scenario, run by `graphwidget explain` in a process of its own and compared with its measured truth."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import score

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted((p.stem for p in PROGRAMS.glob("*.json")), key=lambda name: int(name.split("_")[0]))


@pytest.fixture(scope="session")
def answers():
    """Scenario -> future of (document, reason why there is none); two processes at a time."""
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(score.explain, sys.executable, str(PROGRAMS / f"{name}.py"), 180) for name in NAMES}


def test_there_are_scenarios():
    assert len(NAMES) >= 78


@pytest.mark.parametrize("name", NAMES)
def test_the_explanation_is_true(answers, name):
    document, why_not = answers[name].result()
    assert document is not None, why_not
    truth = json.loads((PROGRAMS / f"{name}.json").read_text())
    compared = score.compare(truth, document)
    assert compared, "nothing was compared"
    wrong = {check: note for check, (held, note) in compared.items() if not held}
    assert not wrong
