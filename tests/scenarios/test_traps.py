"""Programs in which a fix looks right and is not: a second carrier, a second write, an alias, a tensor used again later.

The header of each program lists the verified fixes. The test applies each of these and runs the program in plain torch.
A header may also list texts that the findings and their fixes must contain (`# says: one | another`), and texts that
none of them may contain or write (`# never says:`): a false sentence, a harmful edit.
"""

from pathlib import Path

import pytest
from runs import editor, plain
from runs.warm import forked
from test_fixes import run_plainly

TRAPS = {path.stem: path for path in sorted((Path(__file__).parent / "traps").glob("*.py"))}


@pytest.fixture(scope="module", autouse=True)
def torch_is_here():
    """Import torch once: every program runs in a fork of this process."""
    plain.preload()


def verified_in(header):
    (line,) = [line for line in header if line.startswith("# verified:")]
    return line.removeprefix("# verified:").split()


def said_in(header, key="# says:"):
    lines = [line.removeprefix(key) for line in header if line.startswith(key)]
    return [part.strip() for line in lines for part in line.split(" | ")]


def every_word_of(finding):
    """Return all texts of a finding and of its fixes, and the lines that the fixes would write."""
    fixes = finding["fixes"]
    written = (line[2:] for fix in fixes for line in fix["edit"] if line.startswith("+"))
    names = (str(finding.get(key) or "") for key in ("headline", "tensor"))
    return " ".join([finding["text"], *names, *(fix["text"] + " " + fix["price"] for fix in fixes), *written])


@pytest.mark.parametrize("name", TRAPS)
def test_what_is_called_verified_works(name):
    header, cells = plain.parse(str(TRAPS[name]))
    sources, order = [text for _, text in cells], plain.run_order(header, len(cells))
    document, why_not = forked(str(TRAPS[name]))
    assert document is not None, why_not
    step = document["errors"][0]["step"] if document["errors"] else 0
    before = [error["type"] + error["message"][:60] for error in document["errors"]]
    verified = [(f, fix) for f in document["findings"] for fix in f["fixes"] if fix["verified"]]
    for finding, fix in verified:
        after = run_plainly(name, *editor.apply(sources, fix, order, step))
        left = before if finding["severity"] == "warning" else []
        assert after.get("errors") == left, (fix["text"], after)
    assert [fix["id"] for _, fix in verified] == verified_in(header)
    texts = (
        [f["headline"] or "", f["text"], *(fix["text"] + " " + fix["price"] for fix in f["fixes"])]
        for f in document["findings"]
    )
    told = " ".join(text for one in texts for text in one)
    assert [part for part in said_in(header) if part not in told] == [], told
    words = " ".join(every_word_of(finding) for finding in document["findings"])
    assert [part for part in said_in(header, "# never says:") if part in words] == [], words
