"""Programs of several files: what is said of each is what is true of it, and the first fix repairs it.

`projects/NAME/truth.json` was measured with plain PyTorch: where the program raises, which line made what was reused,
which modified or kept it, and what the corrected program prints.
"""

import json
import re
import shutil
from pathlib import Path

import prepared
import pytest

from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import TextEdit

PROJECTS = sorted((Path(__file__).parent / "projects").iterdir())


def python(folder, *command):
    return prepared.run(*command, cwd=folder)


def spot(place):
    return [place["file"], place["line"]] if place else None


@pytest.fixture(params=PROJECTS, ids=lambda folder: folder.name)
def project(request, tmp_path):
    folder = tmp_path / request.param.name
    shutil.copytree(request.param, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder, json.loads((folder / "truth.json").read_text())


def test_a_program_of_several_files_is_explained_and_repaired(project):
    folder, truth = project
    done = python(folder, "-m", "graphwidget", "explain", "--no-try", "--format", "json", *truth["command"])
    document = json.loads(done.stdout)
    loud = [one for one in document["findings"] if one["severity"] != "info"]
    assert [spot(error["place"]) for error in document["errors"]] == ([truth["error"]] if truth["error"] else [])
    if truth["kind"] is None:
        assert loud == [] and done.returncode == 0
        return
    found = loud[0]
    assert found["kind"] == truth["kind"]
    assert spot(found["cause"]) in truth["cause"]
    assert spot(found["places"]["freed_by"]) == truth["freed_by"]
    assert all(any(re.search(wanted, name) for name in found["names"]) for wanted in truth["names"])
    fix = found["fixes"][0]
    written = "\n".join(edit["new"] for edit in fix["edits"]) or fix["text"]
    assert "must_not" not in truth or not re.search(truth["must_not"], written)
    if not truth["fix"]:
        return
    assert fix["edits"]
    for file in {edit["file"] for edit in fix["edits"]}:
        text = (folder / file).read_text()
        edits = [TextEdit(tuple(e["start"]), tuple(e["end"]), e["new"]) for e in fix["edits"] if e["file"] == file]
        (folder / file).write_text(text_edit.apply(text, edits))
    repaired = python(folder, *truth["command"])
    assert (repaired.returncode, repaired.stdout.strip()) == (0, truth["stdout"]), repaired.stderr
    again = json.loads(
        python(folder, "-m", "graphwidget", "explain", "--no-try", "--format", "json", *truth["command"]).stdout
    )
    assert [one for one in again["findings"] if one["severity"] != "info"] == []
