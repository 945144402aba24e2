"""Writes the pictures of many programs for the tests of the page, as the kernel would send them.

    python js/test/programs/make.py [NAME ...]

Each program of `programs.py` gives NAME.json: a list of ``[moment, message]``, one for each picture that a view would
get. A moment is ``"In[2]"``, a cell's end, or ``"In[2] ①"``, a call within it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[2] / "tests"), str(HERE.parents[2])]

from programs import PROGRAMS, Program  # noqa: E402
from support.cells import Notebook  # noqa: E402

from graphwidget.diagnosis.diagnose import diagnose  # noqa: E402
from graphwidget.model import Event  # noqa: E402
from graphwidget.notebook.requests.offers import Offers  # noqa: E402
from graphwidget.render.wire import encode  # noqa: E402


def pictures(program: Program) -> list[tuple[str, str]]:
    """Run a program; return its pictures."""
    notebook = Notebook(diagnose=diagnose, notebook=True)
    tracker = notebook.tracker
    offers = Offers()
    offers.follow(tracker.hues)
    drawn: list[tuple[str, str]] = []

    def draw(event: Event) -> None:
        if event.kind == "call" and not program.live:
            return
        drawing = tracker.drawing()
        name = f"In[{event.cell}]" + (f" ({(event.call or 0) + 1})" if event.kind == "call" else "")
        drawn.append((name, encode(drawing, len(drawn) + 1, offers.update(drawing))))

    stop = tracker.subscribe(draw)
    for cell in program.cells:
        notebook.run(cell)
    stop()
    notebook.close()
    return [each for each in drawn if program.wanted(each[0])]


def write(name: str) -> None:
    text = json.dumps([[moment, json.loads(message)] for moment, message in pictures(PROGRAMS[name])])
    (HERE / f"{name}.json").write_text(text + "\n")
    print(f"{name}: {len(text):,} bytes")


def main(names: list[str]) -> None:
    if len(names) == 1:
        write(names[0])
        return
    for name in names or PROGRAMS:  # each in a process of its own, as a kernel runs one notebook
        subprocess.run([sys.executable, __file__, name], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
