"""What the source of a function says, as plain data."""

from __future__ import annotations

import types
from dataclasses import dataclass

__all__ = ["RAISES", "WRITES", "WRITES_ARGUMENT", "Reading"]

RAISES = "raises"
WRITES = "writes into a tensor in place"
WRITES_ARGUMENT = "writes into its argument in place"  # the effect that counts least: any other is named instead


@dataclass(frozen=True)
class Reading:
    """What the source of a function says. The defaults are for code that cannot be read.

    Attributes
    ----------
    plain
        It does nothing that a forecast cannot foresee.
    effect
        Something it surely does that nobody can foresee; then it is not plain either.
    reads_saved
        Whether it reads `ctx.saved_tensors`: surely, never, or None.
    returns
        Per returned value, whether it is a tensor if all arguments are (None: unknown). None: even their number is
        unknown.
    exact
        It always returns as many values as `returns` has.
    helpers
        Names of the functions that it calls, and the code of each when it was read. Once a name stands for other code,
        the function has to be read again.
    """

    plain: bool = False
    effect: str = ""
    reads_saved: bool | None = None
    returns: tuple[bool | None, ...] | None = None
    exact: bool = False
    helpers: tuple[tuple[str, types.CodeType], ...] = ()
