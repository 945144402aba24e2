"""How findings and fixes say places, code and names: once, so that all of them agree."""

from __future__ import annotations

from graphwidget.diagnosis.source import syntax as source
from graphwidget.model import CellRun, Place, cut

__all__ = ["at", "names", "no_gradient", "outer_at", "place_of", "short", "where"]


def place_of(run: CellRun, line: int) -> Place:
    """A line of a cell's run as a place."""
    return Place(run.cell, line, source.line_text(run.source, line), run.cell, line, run=run.run, cell_id=run.cell_id)


def where(place: Place | None) -> str:
    """``In[2], line 4``; empty when unknown. The innermost frame: in a function, the line of the function."""
    if place is None or place.cell is None:
        return ""
    return f"In[{place.cell}], line {place.line}"


def at(place: Place | None) -> tuple[int, int] | None:
    """(cell, line) of a place: the innermost frame's."""
    if place is None or place.cell is None or place.line is None:
        return None
    return (place.cell, place.line)


def outer_at(place: Place | None) -> tuple[int, int] | None:
    """(cell, line) of the line of the cell that ran, which may have called a function of another cell."""
    if place is None:
        return None
    if place.outer_cell is not None and place.outer_line is not None:
        return (place.outer_cell, place.outer_line)
    return at(place)


def short(text: str, most: int = 60) -> str:
    """Code as a sentence can quote it."""
    return f"`{cut(' '.join(text.split()), most)}`"


def names(paths: tuple[str, ...], most: int = 3) -> str:
    """`a`, `b` and 2 more."""
    shown = [f"`{p}`" for p in paths[:most]]
    if len(paths) > most:
        return ", ".join(shown) + f" and {len(paths) - most} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def no_gradient(paths: tuple[str, ...], why: str) -> str:
    """`w` gets no gradient from ..."""
    return f"{names(paths)} {'gets' if len(paths) == 1 else 'get'} no gradient {why}."


def number(n: int) -> str:
    """Calls as people count them: ① for n = 0. The view draws both forms alike.

    Beyond ⑩ in words: a terminal's or a notebook's usual fonts on Linux (DejaVu) have no ⑪.
    """
    return chr(0x2460 + n) if n < 10 else f"call {n + 1}"


def opening(n: int) -> str:
    """A call's number where a sentence begins with it."""
    return number(n).capitalize()
