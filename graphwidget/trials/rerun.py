"""How a program is run again: how it was started, and its texts with a fix in them."""

from __future__ import annotations

import io
import json
import os
import time
import tokenize
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import decode_source
from pathlib import Path
from typing import Literal

import psutil

from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import Fix, TextEdit

__all__ = ["BEGAN", "CannotEdit", "CellOf", "Edited", "Job", "Rerun", "edited", "edits_by_text", "now", "text_at"]


CellOf = Callable[[int | None], int | None]
BEGAN = ".began"  # behind the name of the file for the account


class CannotEdit(Exception):
    """A fix that no machine can make; the message says why."""


@dataclass(frozen=True)
class Rerun:
    """A program as it was started.

    Attributes
    ----------
    target, arguments, module
        What was run: a file, or with `module` the name of a module, and its ``sys.argv[1:]``.
    cells, order
        The texts of its cells, and the numbers from 1 of those that ran, in their order. No cells: it is run whole.
    notebook
        Whether the cells are a notebook's.
    folder, environment
        Those in which it began.
    began
        When, by `time.monotonic`.
    start_seconds
        How long its process had needed until then: about what another one needs.
    """

    target: str
    arguments: Sequence[str] = ()
    module: bool = False
    cells: Sequence[str] = ()
    order: Sequence[int] = ()
    notebook: bool = False
    folder: str = "."
    environment: Mapping[str, str] = field(default_factory=dict)
    began: float = 0.0
    start_seconds: float = 0.0


@dataclass(frozen=True)
class Job:
    """What a child process is to run, and how far; it crosses to it as JSON.

    Attributes
    ----------
    texts
        The contents of edited files by their absolute paths, in Latin-1: one character a byte.
    failing
        The n of the call that failed, or the number of calls if none did.
    calls
        How many calls may run before it is stopped, at the one that is asked about; None: no call is.
    ends_at
        How many calls it makes, as it was stopped after so many before; None: it runs to its end.
    seconds, until
        After how long it gives its account wherever it is, and at what time at the latest (of the system's clock).
    account
        The file for its account; beside it, `BEGAN` is written when the program begins.
    lineage
        Whether to measure where values leave the graph: not; ``"alone"``, and that is left in place of an account; or
        ``"too"``, for the findings of the account.
    nonfinite
        Whether to measure also where values stop to be finite.
    begins_from, must_keep
        For the `Keeper` of files, whose folder is that for the account.
    """

    target: str
    arguments: Sequence[str]
    module: bool
    cells: Sequence[str]
    order: Sequence[int]
    notebook: bool
    texts: Mapping[str, str]
    failing: int
    calls: int | None
    seconds: float
    until: float
    account: str
    lineage: Literal["", "alone", "too"] = ""
    nonfinite: bool = False
    begins_from: Sequence[str] = field(default_factory=list)
    must_keep: bool = True
    ends_at: int | None = None

    @property
    def kept(self) -> Path:
        """The folder for the journal and the copies of files."""
        return Path(self.account).parent / "kept"

    def to_json(self) -> str:
        """As text for the child."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        """The job that `to_json` wrote."""
        return Job(**json.loads(text))


def now(target: str, arguments: Sequence[str] = (), *, module: bool = False) -> Rerun:
    """A program that is about to run in this process."""
    try:
        folder = os.getcwd()
    except OSError:
        folder = "."
    return Rerun(
        target,
        tuple(arguments),
        module,
        folder=folder,
        environment=dict(os.environ),
        began=time.monotonic(),
        start_seconds=_age_of_this_process(),
    )


def _age_of_this_process() -> float:
    try:
        return max(0.0, time.time() - psutil.Process().create_time())
    except psutil.Error:
        return 0.0


@dataclass(frozen=True)
class Edited:
    """A program with a fix in it.

    Attributes
    ----------
    rerun
        The program, with edited cells.
    texts
        The contents of edited files; see `Job`.
    inserted
        The step from 1 at which a cell runs once more; 0: none does.
    begins
        The first step that runs an edited cell, or the inserted one; 0: it is not known.
    """

    rerun: Rerun
    texts: Mapping[str, str] = field(default_factory=dict)
    inserted: int = 0
    begins: int = 0


def edited(rerun: Rerun, fix: Fix, cell_of: CellOf, step: int) -> Edited:
    """The program with a fix in it.

    Parameters
    ----------
    cell_of
        Turns the number by which a record knows a cell into the number of the program's cell.
    step
        The step from 1 whose cell raised.

    Raises
    ------
    CannotEdit
        If the fix is no edit, or does not fit the text.
    """
    if fix.id == "rerun_forward_cell" and fix.at is not None and rerun.cells:
        again = cell_of(fix.at[0])
        if again is None or not 1 <= again <= len(rerun.cells):
            raise CannotEdit("it is not known which cell of the program is meant")
        at = max(0, step - 1)
        return Edited(replace(rerun, order=[*rerun.order[:at], again, *rerun.order[at:]]), {}, at + 1, at + 1)
    if fix.edits:
        return _with_edits(rerun, fix.edits, cell_of)
    if fix.edit and fix.at is None and rerun.cells:  # a new statement behind all cells
        new = "\n".join(line[2:] for line in fix.edit)
        last = len(rerun.order) + 1
        return Edited(
            replace(rerun, cells=[*rerun.cells, new], order=[*rerun.order, len(rerun.cells) + 1]), begins=last
        )
    raise CannotEdit("it is advice, and no edit that a machine can make")


def _with_edits(rerun: Rerun, edits: Sequence[TextEdit], cell_of: CellOf) -> Edited:
    cells, texts = list(rerun.cells), {}
    by_text = edits_by_text(rerun, edits, cell_of)
    for where, own in by_text.items():
        if isinstance(where, int):
            cells[where - 1] = _applied(cells[where - 1], own)
        else:
            texts[str(Path(rerun.folder, where))] = _edited_file(Path(rerun.folder, where), own)
    first = next((step for step, cell in enumerate(rerun.order, 1) if cell in by_text), 0)
    return Edited(replace(rerun, cells=cells), texts, begins=0 if texts else first)


def edits_by_text(rerun: Rerun, edits: Sequence[TextEdit], cell_of: CellOf) -> dict[int | str, list[TextEdit]]:
    """Edits by the text that they change: the number of a cell, or the path of a file."""
    found: dict[int | str, list[TextEdit]] = {}
    for edit in edits:
        cell = cell_of(edit.cell) if edit.cell is not None else None
        where = edit.file if edit.file is not None else cell
        if where is None or (isinstance(where, int) and not 1 <= where <= len(rerun.cells)):
            raise CannotEdit("the text that it changes is in no cell and no file")
        found.setdefault(where, []).append(edit)
    return found


def text_at(rerun: Rerun, where: int | str) -> str:
    """The text of a cell or a file."""
    if isinstance(where, int):
        return rerun.cells[where - 1]
    return _read(Path(rerun.folder, where))[0]


def _applied(text: str, edits: Sequence[TextEdit]) -> str:
    try:
        return text_edit.apply(text, edits)
    except ValueError as error:
        raise CannotEdit(f"the text has changed ({error})") from None


def _edited_file(path: Path, edits: Sequence[TextEdit]) -> str:
    """The contents of a file with edits, in its own encoding, one character a byte."""
    text, encoding = _read(path)
    try:
        return _applied(text, edits).encode(encoding).decode("latin-1")
    except UnicodeError as error:
        raise CannotEdit(f"{path} cannot be written in its encoding ({error})") from None


def _read(path: Path) -> tuple[str, str]:
    """The text of a file, and its encoding."""
    try:
        content = path.read_bytes()
        return decode_source(content), tokenize.detect_encoding(io.BytesIO(content).readline)[0]
    except (OSError, SyntaxError, UnicodeError) as error:
        raise CannotEdit(f"{path} cannot be read ({error})") from None
