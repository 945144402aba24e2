"""Sizes as people read them."""

import pytest

from graphwidget.model import bytes_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_949, "99.9 kB"),
        (99_950, "100 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (2_500_000, "2.5 MB"),
        (10**13, "10000 GB"),
    ],
)
def test_bytes(count, text):
    assert bytes_text(count) == text
