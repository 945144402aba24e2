"""Every scenario, run by `graphwidget explain` in a process of its own and compared with its measured truth."""

import re

import pytest
import score
import truths

SCENARIOS = truths.scenarios()
QUIET = ("ok", "nasty")  # kinds of programs that may have no finding


def test_there_are_scenarios():
    assert len(SCENARIOS) >= 150


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_explanation_is_true(explanation, name):
    compared = list(score.compare(SCENARIOS[name].truth, explanation(name)))
    assert compared, "nothing was compared"
    assert [(one.check, one.note) for one in compared if not one.held] == []


def flaws(text):
    """Yield each flaw in the form of a text, in words; none for a good one."""
    plain = re.sub(r"`[^`]*`", "code", text)
    odd = r"  |\bNone\b(?! *[:.])|(?<!and )code get no|1 nodes|1 findings|\.\.$"
    if re.search(odd, plain.replace("to None", "away")):
        yield "odd words"
    if text and text.rstrip()[-1] not in ".!":
        yield "no end"
    for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z①-⑳]|code\b)", plain):
        if len(re.sub(r"\([^)]*\)", "", sentence).split()) > 20:
            yield f"too long: {sentence}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_sentences_are_short_and_well_formed(explanation, name):
    document = explanation(name)
    truth = SCENARIOS[name].truth
    findings = document["findings"]
    assert findings or truth["kind"] in QUIET or truth["false_alarm_trap"], "something is wrong, and nothing is said"
    for finding in findings:
        assert finding["headline"] and finding["text"]
        fixes = [text for fix in finding["fixes"] for text in (fix["text"], fix["price"])]
        wrong = {text: found for text in (finding["headline"], finding["text"], *fixes) if (found := list(flaws(text)))}
        assert not wrong


@pytest.mark.parametrize(
    "text",
    [
        "`w`  gets no gradient.",
        "`w` get no gradient.",
        "It kept 1 nodes.",
        "The value is None and stays.",
        "It is freed",
        "It is freed..",
        "This sentence goes on and on, because nobody has told whoever wrote it that a student reads it on a screen.",
    ],
)
def test_a_bad_sentence_is_found(text):
    assert list(flaws(text))


def test_a_good_text_has_no_flaw():
    assert not list(flaws("② needs saved tensors that ① freed. Pass `retain_graph=True` (In[2], line 1) there."))
