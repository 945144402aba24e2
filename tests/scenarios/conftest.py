"""One answer of `graphwidget explain` for each program, shared by the tests of it."""

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import score
import truths
from warm import forked

SCENARIOS = truths.scenarios()
ALONE = set(list(SCENARIOS)[::12])  # run as a user would, in a process of their own


def explained(name):
    path = str(SCENARIOS[name].path)
    return score.explain(sys.executable, path, 180) if name in ALONE else forked(path)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """One for all processes that the tests are shared out to."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture
def explanation(folder):
    """Program -> its document; each program is run once, whichever process asks first."""

    def of(name):
        kept = folder / f"{name}.json"
        if not kept.exists():
            with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
                json.dump(explained(name), file)
            Path(file.name).rename(kept)  # whole, or not there
        document, why_not = json.loads(kept.read_text())
        assert document is not None, why_not
        return document

    return of
