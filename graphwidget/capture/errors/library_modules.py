"""The module in whose code an error was raised, where that code came with a library: no line of the program names it.

``net(x)`` runs a whole `nn.Sequential`; which of its modules has failed is known by the frames of the error alone.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.errors.modules import named_modules
from graphwidget.capture.owners import reading
from graphwidget.model import RunningModule

__all__ = ["within"]


def within(frames: Sequence[tuple[FrameType, int]], objects: Mapping[str, Any]) -> RunningModule | None:
    """Return the innermost module whose `forward` was running; None: none was.

    Parameters
    ----------
    frames
        The frames of the error that the user's innermost line led to, with their lines, outermost first.
    objects
        The variables of the user's frames, by name.
    """
    selves = [dict(reading.locals_of(frame)).get("self") for frame, _ in frames]
    running = [
        one
        for one, (frame, _) in zip(selves, frames)
        if frame.f_code.co_name == "forward" and torch.nn.Module in reading.mro_of(type(one))
    ]
    if not running:
        return None
    module = running[-1]
    frame, line = next(found for one, found in reversed([*zip(selves, frames)]) if one is module)
    statement = _statement(frame, line)
    with ti.quiet():
        own = reading.own_attributes(module)
        buffers = tuple(name for name in _attributes(statement) if (own.get("_buffers") or {}).get(name) is not None)
        return RunningModule(
            _path(module, objects),
            type(module).__name__,
            own.get("inplace") is True,
            ast.unparse(statement) if statement is not None else "",
            buffers,
            own.get("track_running_stats") is True,
        )


def _path(module: Any, objects: Mapping[str, Any]) -> str:
    """Return the name of a module: a variable leads to it, or an attribute of an object that a variable holds."""
    inside = {
        f"{name}.{key}": value
        for name, one in objects.items()
        if reading.is_own_class(type(one))
        for key, value in reading.own_attributes(one).items()
    }
    found = (path for held in (objects, inside) for path, one in named_modules(held) if one is module)
    return next(found, "")


def _statement(frame: FrameType, line: int) -> ast.stmt | None:
    """Return the simple statement at a line of a frame's file, as far as the file is there."""
    text = "".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    around = [
        one
        for one in ast.walk(tree)
        if isinstance(one, ast.stmt) and not hasattr(one, "body") and one.lineno <= line <= (one.end_lineno or 0)
    ]
    return around[-1] if around else None


def _attributes(statement: ast.stmt | None) -> list[str]:
    """Return the attributes of `self` that a statement names, each once."""
    nodes = ast.walk(statement) if statement is not None else ()
    found = (one for one in nodes if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name))
    return [*dict.fromkeys(one.attr for one in found if isinstance(one.value, ast.Name) and one.value.id == "self")]
