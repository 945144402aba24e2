"""One answer of `graphwidget explain` for each program, shared by the tests."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import score

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
ALONE = 12  # every so many programs one is run as a user would, in a process of its own

_mine = threading.local()


def forked(path):
    """The answer of this thread's worker, which has imported torch already; see forked.py."""
    if not hasattr(_mine, "worker"):
        _mine.worker = subprocess.Popen(
            [sys.executable, str(HERE / "forked.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    _mine.worker.stdin.write(f"{path}\t{score.order_of(path) or ''}\n")
    _mine.worker.stdin.flush()
    line = _mine.worker.stdout.readline()
    return json.loads(line) if line else (None, "the worker has died")


def explained(position, path):
    return score.explain(sys.executable, path, 180) if position % ALONE == 0 else forked(path)


@pytest.fixture(scope="session")
def answers(request):
    """Scenario -> future of (document, reason why there is none), for the chosen tests; two at a time."""
    chosen = [getattr(item, "callspec", None) for item in request.session.items]
    given = [value for spec in chosen if spec for value in spec.params.values() if isinstance(value, str)]
    names = [name for name in dict.fromkeys(given) if (PROGRAMS / f"{name}.json").exists()]
    pool = ThreadPoolExecutor(2)
    yield {name: pool.submit(explained, at, str(PROGRAMS / f"{name}.py")) for at, name in enumerate(names)}
    pool.shutdown(cancel_futures=True)
