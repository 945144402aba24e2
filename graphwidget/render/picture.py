"""The static picture as SVG text.

The front end's own `picture.js` draws them, run by an embedded JavaScript engine (quickjs-ng), so that
there is one layout and one set of marks, not two. Nothing but text goes in and text comes out: the
engine has no access to files, network or Python.
"""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from importlib import resources
from typing import Literal

from graphwidget.model import Drawing, SlotState, Snapshot
from graphwidget.render import wire
from graphwidget.render.program import ProgramRun
from graphwidget.render.words import count

__all__ = ["drawing_of", "program_svg", "run_engine", "title_of", "to_svg"]

Theme = Literal["auto", "light", "dark"]


def to_svg(graph: Drawing | Snapshot, *, theme: Theme = "auto", title: str | None = None, compact: bool = False) -> str:
    """The picture as self-contained SVG text.

    Parameters
    ----------
    graph
        A snapshot, or a snapshot with its calls, events and findings.
    theme
        ``auto`` follows the viewer's setting.
    title
        Title of the picture, for screen readers. Default: the moment that it shows.
    compact
        One-line cards.

    Raises
    ------
    ImportError
        If quickjs-ng is not installed.
    ValueError
        If `theme` is none of the three.
    """
    drawing = drawing_of(graph)
    if theme not in ("auto", "light", "dark"):
        raise ValueError(f"theme is 'auto', 'light' or 'dark', not {theme!r}")
    options = {
        "theme": theme,
        "title": title or title_of(drawing),
        "description": _description(drawing),
        "compact": compact,
    }
    return run_engine("draw", wire.encode(drawing), options)


def program_svg(run: ProgramRun) -> str:
    """The last picture of a program."""
    return to_svg(run.drawing(), title=run.file)


def drawing_of(graph: Drawing | Snapshot) -> Drawing:
    """What is drawn of a graph.

    Raises
    ------
    TypeError
        If it is something else.
    """
    if isinstance(graph, Snapshot):
        return Drawing(graph)
    if isinstance(graph, Drawing):
        return graph
    raise TypeError(f"a picture is drawn of a Snapshot, not of {type(graph).__name__}: call gw.snapshot(loss) first")


def title_of(drawing: Drawing) -> str:
    """The moment that a drawing shows."""
    event = drawing.events[-1] if drawing.events else None
    if event is None or event.cell is None:
        return "Autograd graph"
    return f"Autograd graph after In[{event.cell}]" + ("" if event.ok else ", which raised")


def _description(drawing: Drawing) -> str:
    """Description of the picture in one or two sentences."""
    if drawing.findings:
        finding = drawing.findings[0]
        return f"{finding.headline} {finding.text}".strip()
    snapshot = drawing.snapshot
    leaves = len(snapshot.leaves)
    saved = sum(state != SlotState.UNSAVED for state in snapshot.slot_state)
    nodes = count(len(snapshot) - leaves, "node")
    return f"{nodes}, {count(leaves, 'leaf', 'leaves')}, {count(saved, 'saved tensor')}."


# ---- The engine ----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _source() -> str:
    return resources.files("graphwidget").joinpath("static/picture.js").read_text(encoding="utf-8")


_NO_ENGINE = "static pictures (SVG, PNG) need quickjs-ng: pip install quickjs-ng. Text and Graphviz need nothing."
_NO_ENGINE_IN_BROWSER = (
    "static pictures (SVG, PNG) need quickjs-ng, which a Python inside the browser cannot install: use to_text() or "
    "to_dot(), or `Export SVG` in the view."
)


def run_engine(function: str, message: str, options: dict[str, object]) -> str:
    """Run a function of `picture.js` on a wire message.

    A fresh engine each time: no state is left, and any thread may ask.

    Raises
    ------
    ImportError
        If quickjs-ng is not installed.
    """
    try:
        import _quickjs  # `quickjs` starts a thread when it is imported: too late where a program has ended
    except ImportError as error:
        raise ImportError(_NO_ENGINE_IN_BROWSER if sys.platform == "emscripten" else _NO_ENGINE) from error
    engine = _quickjs.Context()
    engine.eval(_source())
    engine.set("name", function)
    engine.set("message", message)
    engine.set("options", json.dumps(options))
    # The binding cannot return a string that the engine still keeps in pieces; join makes it one piece.
    drawn = engine.eval('[graphwidgetPicture[name](message, JSON.parse(options))].join("")')
    assert isinstance(drawn, str)
    return drawn
