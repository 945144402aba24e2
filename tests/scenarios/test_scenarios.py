"""Every scenario, run by `graphwidget explain` in a process of its own and compared with its measured truth."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import score

PROGRAMS = Path(__file__).parent / "programs"
NAMES = sorted((p.stem for p in PROGRAMS.glob("*.json")), key=lambda name: int(name.split("_")[0]))


def test_there_are_scenarios():
    assert len(NAMES) >= 150


@pytest.mark.parametrize("name", NAMES)
def test_the_explanation_is_true(answers, name):
    document, why_not = answers[name].result()
    assert document is not None, why_not
    truth = json.loads((PROGRAMS / f"{name}.json").read_text())
    compared = score.compare(truth, document)
    assert compared, "nothing was compared"
    wrong = {check: note for check, (held, note) in compared.items() if not held}
    assert not wrong


@pytest.mark.parametrize("name", NAMES)
def test_sentences_are_short_and_well_formed(answers, name):
    document, why_not = answers[name].result()
    assert document is not None, why_not
    texts = [t for f in document["findings"] for t in (f["headline"], f["text"])]
    texts += [t for f in document["findings"] for fix in f["fixes"] for t in (fix["text"], fix["price"])]
    for text in texts:
        plain = re.sub(r"`[^`]*`", "code", text)
        assert not re.search(
            r"  |\bNone\b(?! *[:.])|(?<!and )code get no|1 nodes|1 findings|\.\.$", plain.replace("to None", "away")
        ), text
        assert not text or text.rstrip()[-1] in ".!", text
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z①-⑳]|code\b)", plain):
            assert len(re.sub(r"\([^)]*\)", "", sentence).split()) <= 20, sentence
