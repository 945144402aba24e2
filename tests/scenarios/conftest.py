"""One answer of `graphwidget explain` for each program, shared by all tests."""

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest
import score
import truths
from runs.warm import forked

SCENARIOS = truths.scenarios()
ALONE = set(list(SCENARIOS)[::30])  # these run in separate processes, as for a user


def explained(name):
    path = str(SCENARIOS[name].path)
    return score.explain(sys.executable, path, 180) if name in ALONE else forked(path)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Return one folder for all test processes."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture
def explanation(folder):
    """Return a function: program -> its document. Each program runs once, in the process that asks first."""

    def of(name):
        kept = folder / f"{name}.json"
        if not kept.exists():
            with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
                json.dump(explained(name), file)
            Path(file.name).rename(kept)  # atomic: no process sees half a file
        document, why_not = json.loads(kept.read_text())
        assert document is not None, why_not
        return document

    return of
