"""One answer of `graphwidget explain` for each program, shared by the tests."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import score

PROGRAMS = Path(__file__).parent / "programs"


@pytest.fixture(scope="session")
def answers(request):
    """Scenario -> future of (document, reason why there is none), for the chosen tests; two processes at a time."""
    chosen = [getattr(item, "callspec", None) for item in request.session.items]
    given = [value for spec in chosen if spec for value in spec.params.values() if isinstance(value, str)]
    names = [name for name in dict.fromkeys(given) if (PROGRAMS / f"{name}.json").exists()]
    pool = ThreadPoolExecutor(2)
    yield {name: pool.submit(score.explain, sys.executable, str(PROGRAMS / f"{name}.py"), 180) for name in names}
    pool.shutdown(cancel_futures=True)
