"""Places, names and sizes as sentences say them."""

from graphwidget.analysis.words import names, no_gradient, short, size


def test_words_agree_with_their_number():
    assert no_gradient(("w",), "from this call") == "`w` gets no gradient from this call."
    assert no_gradient(("w", "b"), "from this call") == "`w` and `b` get no gradient from this call."
    assert names(("a", "b", "c", "d")) == "`a`, `b`, `c` and 1 more"
    assert [size(n) for n in (0, 999, 1500, 2_500_000)] == ["0 B", "999 B", "1.5 KB", "2.5 MB"]
    assert len(short("x" * 99)) == 62
