"""The result of reading the source of a function, as plain data."""

from __future__ import annotations

import types
from dataclasses import dataclass

__all__ = ["RAISES", "WRITES", "WRITES_ARGUMENT", "Reading"]

RAISES = "raises"
WRITES = "writes into a tensor in place"
WRITES_ARGUMENT = "writes into its argument in place"  # the weakest effect: any other one replaces it


@dataclass(frozen=True)
class Reading:
    """The behaviour of a function according to its source. The defaults are for code that cannot be read.

    Attributes
    ----------
    plain
        It does nothing that a forecast cannot foresee.
    effect
        An action that it surely takes and that a forecast cannot follow; then it is not plain either.
    reads_saved
        Whether it reads `ctx.saved_tensors`: surely (True), never (False), or unknown (None).
    returns
        For each returned value, whether it is a tensor if all arguments are tensors (None: unknown). None for all: even
        their number is unknown.
    exact
        It always returns as many values as `returns` has.
    helpers
        Names of the functions that it calls, and the code of each when it was read. Once a name refers to other code,
        the function must be read again.
    """

    plain: bool = False
    effect: str = ""
    reads_saved: bool | None = None
    returns: tuple[bool | None, ...] | None = None
    exact: bool = False
    helpers: tuple[tuple[str, types.CodeType], ...] = ()
