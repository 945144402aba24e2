"""One HTML file with the front end of the live view, a recording, and no kernel.

It asks the network for nothing: the browser is told so by a content security policy, which also allows only the one
script that is in the file (by its hash). What comes from the user's program is in two places: as text that is escaped,
and in the recording, whose base64 has no character that means something to a page.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from html import escape
from importlib import resources
from pathlib import Path

from graphwidget.exports.recording import packed, recording
from graphwidget.model import Drawing, Snapshot, Verdict
from graphwidget.render import picture, report, text
from graphwidget.render.program import ProgramRun

__all__ = ["program_html", "to_html"]

# The last line of widget.js, which makes a module of it (js/build.mjs).
_EXPORT = "export default graphwidgetFrontEnd.default;\n"
_START = """
const place = document.getElementById("view");
const data = document.getElementById("recording").textContent;
graphwidgetFrontEnd.openRecording(place, data).catch((error) => console.error("graphwidget:", error));
"""
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:14px/1.45 system-ui,sans-serif;margin:16px;color:#1b2027;background:#fff}"
    "h1{font-size:18px}h2{font-size:15px;margin:20px 0 6px}#view{overflow-x:auto}summary{cursor:pointer}"
    "pre{font:12px/1.45 Menlo,Consolas,'DejaVu Sans Mono',monospace;overflow-x:auto;margin:0}"
    "pre.findings{white-space:pre-wrap}"
    "@media(prefers-color-scheme:dark){body{color:#e7eaee;background:#13161a}}"
)


def to_html(graph: Drawing | Snapshot, *, title: str | None = None, verdict: Verdict | None = None) -> str:
    """The view as one HTML page: to look around in, with its timeline, without a kernel and without network.

    Parameters
    ----------
    graph
        A snapshot, or a snapshot with its calls, events and findings.
    title
        Title of the page. Default: the moment that it shows.
    verdict
        The errors without a finding, for the page of a whole program.

    Notes
    -----
    Without scripts the page shows the static picture, where quickjs-ng is installed, and the graph in words.
    """
    drawing = picture.drawing_of(graph)
    heading = escape(title or picture.title_of(drawing))
    script, style = _front_end()
    found = ["\n".join(report.finding_lines(finding)) for finding in drawing.findings]
    found += ["\n".join(report.verdict_lines(verdict))] if verdict is not None else []
    findings = escape("\n\n".join(found))
    words = escape(text.picture(drawing, max_lines=2000, findings=False))
    page = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{heading}</title>\n<style>{_STYLE}</style>\n<style>{style}</style>\n</head>\n<body>\n<main>",
        f"<h1>{heading}</h1>",
        f'<div id="view"><figure style="margin:0">{_static(drawing, title)}</figure></div>',
        f'<h2>Findings</h2>\n<pre class="findings">{findings}</pre>' if found else "",
        f"<details><summary>The graph in words</summary>\n<pre>{words}</pre></details>",
        f'</main>\n<script type="application/octet-stream" id="recording">{packed(recording(drawing))}</script>',
        f"<script>{script}</script>\n</body>\n</html>\n",
    ]
    # A broken surrogate cannot be written as UTF-8.
    return "\n".join(filter(None, page)).encode("utf-8", "replace").decode("utf-8")


def program_html(run: ProgramRun) -> str:
    """The page of a whole program: its last picture with the timeline, and the findings."""
    return to_html(run.drawing(), title=Path(run.file).name, verdict=run.verdict)


@lru_cache(maxsize=1)
def _front_end() -> tuple[str, str]:
    """Script and style sheet of the page."""
    static = resources.files("graphwidget").joinpath("static")
    bundle = static.joinpath("widget.js").read_text(encoding="utf-8")
    assert bundle.endswith(_EXPORT), "the bundle is not the one of this version: make bundle"
    return bundle.removesuffix(_EXPORT) + _START, static.joinpath("widget.css").read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Nothing from elsewhere, and only this script. Styles are set on elements, so they cannot be listed by hash."""
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _static(drawing: Drawing, title: str | None) -> str:
    try:
        return picture.to_svg(drawing, title=title)
    except ImportError:
        return ""
