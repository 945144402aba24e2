"""One answer of `graphwidget explain` for each program, shared by the tests."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import score

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def answers():
    """Scenario -> future of (document, reason why there is none); two processes at a time."""
    names = sorted((p.stem for p in PROGRAMS.glob("*.json")), key=lambda name: int(name.split("_")[0]))
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(score.explain, sys.executable, str(PROGRAMS / f"{name}.py"), 180) for name in names}
