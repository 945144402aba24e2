"""What the bytecode of a function can contain: read before its text is, which takes far longer."""

from __future__ import annotations

import dis
from types import CodeType

__all__ = ["has_loop", "may_write"]

_LOOPS = frozenset(
    number
    for name, number in dis.opmap.items()
    if name in ("FOR_ITER", "GET_ANEXT", "JUMP_ABSOLUTE", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE") or "BACKWARD" in name
)
_WRITES = frozenset(
    number for name, number in dis.opmap.items() if name.startswith("INPLACE_") or name in ("STORE_SUBSCR", "BINARY_OP")
)


def has_loop(code: CodeType) -> bool:
    """Whether a function may have a loop."""
    return not _LOOPS.isdisjoint(code.co_code[::2])


def may_write(code: CodeType) -> bool:
    """Whether a function may look like writing in place: ``x += …``, ``x[i] = …``, ``x.add_(…)``, ``opt.step()``."""
    named = any((name.endswith("_") and not name.endswith("__")) or name in ("step", "data") for name in code.co_names)
    return named or not _WRITES.isdisjoint(code.co_code[::2])
