"""Static pictures: SVG text and one-file HTML.

The front end's own `picture.js` draws them, run by an embedded JavaScript engine (quickjs-ng), so that
there is one layout and one set of marks, not two. Nothing but text goes in and text comes out: the
engine has no access to files, network or Python.
"""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from html import escape
from importlib import resources
from typing import Literal

from graphwidget.model import Drawing, SlotState, Snapshot, Verdict
from graphwidget.render import report, text, wire
from graphwidget.render.program import ProgramRun
from graphwidget.render.words import count

__all__ = ["program_html", "program_svg", "to_html", "to_svg"]

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
    drawing = _drawing(graph)
    if theme not in ("auto", "light", "dark"):
        raise ValueError(f"theme is 'auto', 'light' or 'dark', not {theme!r}")
    options = {
        "theme": theme,
        "title": title or _title(drawing),
        "description": _description(drawing),
        "compact": compact,
    }
    return _draw(wire.encode(drawing), options)


def to_html(graph: Drawing | Snapshot, *, title: str | None = None, verdict: Verdict | None = None) -> str:
    """The picture, its findings and its text form as one HTML page that needs no script and no network.

    Parameters
    ----------
    graph, title
        As for `to_svg`.
    verdict
        The errors without a finding, for the page of a whole program.

    Raises
    ------
    ImportError
        If quickjs-ng is not installed.
    """
    drawing = _drawing(graph)
    heading = title or _title(drawing)
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(heading)}</title>\n<style>{_PAGE_STYLE}</style>\n</head>\n<body>",
        f"<h1>{escape(heading)}</h1>",
        f"<figure>{to_svg(drawing, title=heading)}</figure>",
    ]
    found = [*_findings(drawing), *(["\n".join(report.verdict_lines(verdict))] if verdict is not None else [])]
    if found:
        whole = "\n\n".join(found)
        parts += ["<h2>Findings</h2>", f'<pre class="findings">{escape(whole)}</pre>']
    parts += [
        "<h2>The graph in words</h2>",
        f"<pre>{escape(text.picture(drawing, max_lines=2000, findings=False))}</pre>",
    ]
    parts.append("</body>\n</html>\n")
    return _clean("\n".join(parts))


def program_html(run: ProgramRun) -> str:
    """The page of a whole program: its last picture, and the findings."""
    return to_html(run.drawing(), title=run.file, verdict=run.verdict)


def program_svg(run: ProgramRun) -> str:
    """The last picture of a program."""
    return to_svg(run.drawing(), title=run.file)


_PAGE_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:14px/1.45 system-ui,sans-serif;margin:16px;color:#1b2027;background:#fff}"
    "h1{font-size:18px}h2{font-size:15px;margin:20px 0 6px}figure{margin:0;overflow-x:auto}"
    "pre{font:12px/1.45 Menlo,Consolas,'DejaVu Sans Mono',monospace;overflow-x:auto;margin:0}"
    "pre.findings{white-space:pre-wrap}"
    "@media(prefers-color-scheme:dark){body{color:#e7eaee;background:#13161a}}"
)


def _drawing(graph: Drawing | Snapshot) -> Drawing:
    if isinstance(graph, Snapshot):
        return Drawing(graph)
    if isinstance(graph, Drawing):
        return graph
    raise TypeError(f"a picture is drawn of a Snapshot, not of {type(graph).__name__}: call gw.snapshot(loss) first")


def _title(drawing: Drawing) -> str:
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


def _findings(drawing: Drawing) -> list[str]:
    return ["\n".join(report.finding_lines(finding)) for finding in drawing.findings]


def _clean(page: str) -> str:
    """Replace broken surrogates, which cannot be written as UTF-8."""
    return page.encode("utf-8", "replace").decode("utf-8")


# ---- The engine ----------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _source() -> str:
    return resources.files("graphwidget").joinpath("static/picture.js").read_text(encoding="utf-8")


_NO_ENGINE = "static pictures (SVG, HTML) need quickjs-ng: pip install quickjs-ng. Text and Graphviz need nothing."
_NO_ENGINE_IN_BROWSER = (
    "static pictures (SVG, HTML) need quickjs-ng, which a Python inside the browser cannot install: use to_text() or "
    "to_dot(), or `Export SVG` in the view."
)


def _draw(message: str, options: dict[str, object]) -> str:
    """Run `picture.js` on a wire message. A fresh engine each time: no state is left, and any thread may ask."""
    try:
        import quickjs
    except ImportError as error:
        raise ImportError(_NO_ENGINE_IN_BROWSER if sys.platform == "emscripten" else _NO_ENGINE) from error
    engine = quickjs.Context()
    engine.eval(_source())
    engine.set("message", message)
    engine.set("options", json.dumps(options))
    # The binding cannot return a string that the engine still keeps in pieces; join makes it one piece.
    svg = engine.eval('[graphwidgetPicture.draw(message, JSON.parse(options))].join("")')
    assert isinstance(svg, str)
    return svg
