"""`FORMATS`: every form in which a graph, or the answer of ``graphwidget explain``, is written.

`Snapshot.export` and its ``to_*`` methods, the command line and the view's export menu all read this one table. A new
form is a function in a file of its own, and one line here.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from graphwidget.exports import page
from graphwidget.model import Drawing, Snapshot
from graphwidget.render import dot, json_export, networkx_export, picture, program, raster, text

__all__ = ["ANSWERS", "FORMATS", "Format", "export"]


@dataclass(frozen=True)
class Format:
    """One form.

    Attributes
    ----------
    label
        Its name in the view's export menu.
    graph
        Writes a graph; the result is text if there is a `suffix`, or bytes if it is `binary`.
    program
        Writes the answer of ``graphwidget explain`` for a whole program. None: the command line does not offer it.
    suffix, media_type
        Suffix of files, and media type on the web. Empty: the result is a Python object and no file.
    binary
        The file is no text, and only the page and Python write it.
    """

    label: str
    graph: Callable[[Drawing], Any]
    program: Callable[[program.ProgramRun], str] | None = None
    suffix: str = ""
    media_type: str = ""
    binary: bool = False


FORMATS: dict[str, Format] = {
    "text": Format("Text", text.picture, program.text, ".txt", "text/plain"),
    "json": Format("JSON", lambda d: json_export.to_json(d.snapshot), program.json_text, ".json", "application/json"),
    "html": Format("HTML, interactive", page.to_html, page.program_html, ".html", "text/html"),
    "svg": Format("SVG", picture.to_svg, picture.program_svg, ".svg", "image/svg+xml"),
    "png": Format("PNG", raster.to_png, None, ".png", "image/png", binary=True),
    "dot": Format("Graphviz", lambda d: dot.to_dot(d.snapshot), program.dot_text, ".dot", "text/vnd.graphviz"),
    "networkx": Format("networkx", lambda d: networkx_export.to_networkx(d.snapshot)),
}

# What the command line can answer for a whole program: in these forms, or as a patch.
ANSWERS: dict[str, Callable[[program.ProgramRun], str]] = {
    **{name: form.program for name, form in FORMATS.items() if form.program is not None},
    "diff": program.diff_text,
}


def export(graph: Drawing | Snapshot, format: str, path: str | PathLike[str] | None = None) -> Any:
    """A graph in one of the `FORMATS`, or None if it was written to `path`.

    Raises
    ------
    ValueError
        If there is no such format, or if a path is given for one that is no file.
    ImportError
        If a package that the format needs is not installed.
    OSError
        If `path` cannot be written.
    """
    known = FORMATS.get(format)
    if known is None:
        near = difflib.get_close_matches(format, FORMATS, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no format {format!r}.{hint} There are: {', '.join(FORMATS)}.")
    if path is not None and not known.suffix:
        raise ValueError(f"{format!r} is a Python object and cannot be written to a file: leave path out.")
    written = known.graph(Drawing(graph) if isinstance(graph, Snapshot) else graph)
    if path is None:
        return written
    if known.binary:
        Path(path).write_bytes(written)
    else:
        Path(path).write_text(written, encoding="utf-8")
    return None
