"""Places and names as sentences say them."""

from graphwidget.diagnosis.wording import names, no_gradient, short


def test_words_agree_with_their_number():
    assert no_gradient(("w",), "from this call") == "`w` gets no gradient from this call."
    assert no_gradient(("w", "b"), "from this call") == "`w` and `b` get no gradient from this call."
    assert names(("a", "b", "c", "d")) == "`a`, `b`, `c` and 1 more"
    assert len(short("x" * 99)) == 62
