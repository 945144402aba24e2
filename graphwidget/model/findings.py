"""Findings, and their text.

The code that words a finding for a person is in `render`. Its import is, with that of `graph/exports.py`, the only one
from this room to a room above it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Literal

from graphwidget.model.fixes import Fix
from graphwidget.model.graph.parts import Place

__all__ = ["Finding", "Findings"]


@dataclass(frozen=True)
class Finding:
    """One thing worth saying. Plain text only; `print(finding)` shows all of it, with its fixes.

    Examples
    --------
    >>> import torch, graphwidget
    >>> with graphwidget.track() as tracker:
    ...     w = torch.ones(3, requires_grad=True)
    ...     loss = w.exp().sum()
    ...     loss.backward()
    ...     try:
    ...         loss.backward()
    ...     except RuntimeError:
    ...         pass
    >>> finding = tracker.findings()[0]
    >>> finding.kind, finding.severity, finding.node
    ('second_backward', 'error', 'ExpBackward0')
    """

    kind: Literal["second_backward", "inplace", "leak", "no_grad", "refused", "silent"]
    severity: Literal["error", "warning", "info"]
    text: str
    headline: str = ""
    call: int | None = None
    node: str = ""
    node_uid: int | None = None
    made_at: Place | None = None
    carriers: tuple[str, ...] = ()
    freed_by: int | None = None
    tensor: str | None = None
    modified_at: Place | None = None
    failed_at: Place | None = None  # the line that raised, where `made_at` is another one and there is no call
    modified_by: str = ""  # the statement there
    bytes: int = 0
    path: tuple[str, ...] = ()  # from the root to the failing node: variables and the node's name
    uids: tuple[int, ...] = ()  # nodes to show when the finding is chosen
    fixes: tuple[Fix, ...] = ()
    cause: Place | None = None  # where a person should look first
    freed_at: Place | None = None
    stored_at: Place | None = None  # the line that keeps a graph
    cut_at: Place | None = None  # the line that leaves the graph
    names: tuple[str, ...] = ()  # the tensors, parameters and variables that it is about, as the user would write them

    also: tuple[int, ...] = ()  # further calls that raised for the same cause

    unexplained: str = ""  # the whole message of an error whose reason is not known

    def key(self, fix: Fix) -> int:
        """A number that names a fix of this finding, the same in all findings that are made of the same record."""
        return zlib.crc32(repr((self.kind, self.call, fix.id, fix.at, fix.edit, fix.edits)).encode()) or 1

    def __str__(self) -> str:
        from graphwidget.render.report import finding_lines

        return "\n".join(finding_lines(self))

    def __repr__(self) -> str:
        return f"<Finding {self.kind}: {self.headline or self.text}>"


class Findings(list[Finding]):
    """Findings as a list. Shown at the end of a cell, or printed, they are read as text.

    Examples
    --------
    >>> import torch, graphwidget
    >>> with graphwidget.track():
    ...     torch.ones(3, requires_grad=True).exp().sum().backward()
    ...     graphwidget.explain()
    No finding.
    """

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self)) or "No finding."
