"""What a record has beyond the model: what it is of, the state of everything now and then, and how it ended."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from graphwidget.model import CellError, Record, Write
from graphwidget.record.naming import rank_and_ranks
from graphwidget.record.problems import UnreadableRecord
from graphwidget.version import __version__

__all__ = ["SCHEMA", "Ending", "Header", "State", "check_schema"]

SCHEMA = 1  # changes whenever a reader of the old form would read something wrong


@dataclass(frozen=True)
class Header:
    """What a record says of itself.

    Attributes
    ----------
    target, arguments, module
        What ran: a file, or with `module` a module's dotted name; and its ``sys.argv[1:]``.
    file
        The file with its code.
    rank, ranks
        Of a process in a distributed job; None and 0: it is in none.
    pid, parent
        Of the process, and of the one it is a fork of (0: of none).
    run
        Number of the process of ``graphwidget run`` that started this one; empty: none did.
    calls_before
        Backward calls that had been made in the process before, or in the one it is a fork of.
    started
        When recording began, in seconds since 1970.
    torch, python, graphwidget
        Versions.
    """

    target: str = ""
    arguments: tuple[str, ...] = ()
    module: bool = False
    file: str = ""
    rank: int | None = None
    ranks: int = 0
    pid: int = 0
    parent: int = 0
    run: str = ""
    calls_before: int = 0
    started: float = 0.0
    torch: str = ""
    python: str = field(default_factory=platform.python_version)
    graphwidget: str = ""

    @classmethod
    def of_this_process(cls, target: str = "", arguments: tuple[str, ...] = (), module: bool = False) -> Header:
        """The header of a record that begins now."""
        import torch

        rank, ranks = rank_and_ranks()
        return cls(
            target,
            arguments,
            module,
            target,
            rank,
            ranks,
            os.getpid(),
            run=os.environ.get("GRAPHWIDGET_RUN", "")[:20],
            started=round(time.time(), 3),
            torch=torch.__version__.split("+")[0],
            graphwidget=__version__,
        )

    def data(self) -> dict[str, Any]:
        """It as JSON data."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {"schema": SCHEMA, **found, "arguments": list(self.arguments)}


@dataclass(frozen=True)
class Ending:
    """How a program ended: its errors, and the status with which it exits. None: only a block of it was recorded."""

    errors: tuple[CellError, ...] = ()
    exit: int | None = None


@dataclass(frozen=True)
class State:
    """What a diagnosis and a picture need apart from calls, events and texts, and what the record is.

    `calls` counts those that had begun. `orders` are the orders of calls (by n) that have got another one since they
    were written: a failing pair has the first two hues. `left_out` says how many entries of a kind (by the letter of
    its frames) are no longer in the file, to stay below its bound. `graphs_too_large`: how many graphs were left out
    because no frame can hold them.
    """

    record: Record
    calls: int = 0
    steps: tuple[Write, ...] = ()
    problems: tuple[str, ...] = ()
    orders: Mapping[int, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    graphs_too_large: int = 0


def check_schema(data: Any) -> None:
    """Check that this version can read a record.

    Raises
    ------
    UnreadableRecord
        If it is of a newer schema, or names none.
    """
    schema = data.get("schema") if isinstance(data, dict) else None
    if type(schema) is not int or schema < 1:
        raise UnreadableRecord("no record of graphwidget: its first frame names no schema")
    if schema > SCHEMA:
        by = data.get("graphwidget")
        which = f"graphwidget {by[:20]}" if isinstance(by, str) and by.isprintable() and by else "a newer graphwidget"
        raise UnreadableRecord(
            f"it is of schema {schema}, written by {which}; this version reads up to {SCHEMA}: "
            "pip install --upgrade graphwidget"
        )
