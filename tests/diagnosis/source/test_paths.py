"""How a path is written, and what a person calls it."""

import pytest

from graphwidget.diagnosis.source.paths import local


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("h", "h"),
        ("step:net.h", "net.h"),
        ("sys.last_traceback: net.h", "net.h"),
        ("error.__traceback__: step:h", "h"),
        ("step:state['a:b']", "state['a:b']"),
        ("state['a:b'].h", "state['a:b'].h"),
    ],
)
def test_a_name_is_said_without_the_frame_that_has_it(path, name):
    assert local(path) == name
