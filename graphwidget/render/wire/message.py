"""The whole message: all data for one picture, as one JSON text.

It has columns instead of objects (`columns`), and every text once in a string table. `SCHEMA` changes whenever a
reader of the old form would fail. A `Base` is a full message with the data that `changes` needs to write deltas.

Texts are ASCII in the message (JSON escapes the rest), so that a source line with a broken surrogate cannot stop it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count as counting
from typing import Any

from graphwidget.model import Drawing, Snapshot, TensorRef, type_text
from graphwidget.render.wire.columns import Strings
from graphwidget.render.wire.graph import graph
from graphwidget.render.wire.story import story

__all__ = ["SCHEMA", "Base", "OfferedRoot", "dump", "encode", "offer"]

SCHEMA = 2


@dataclass(frozen=True, slots=True)
class OfferedRoot:
    """A root as the page may name it: `id` is opaque, `order` picks its hue and stroke style.

    `cells` are the execution counts that Rebuild would run again; None: unknown, Rebuild is off.
    """

    id: int
    ref: TensorRef
    order: int
    cells: tuple[int, ...] | None = None


def offer(drawing: Drawing) -> tuple[OfferedRoot, ...]:
    """The roots of a static picture: hue and style of the calls on them, else in the order of the roots."""
    graph = drawing.snapshot
    called = {call.graph.uid[r.node]: call.order for call in drawing.calls if call.graph for r in call.roots[:1]}
    known = [called.get(graph.uid[ref.node], -1) if ref.node >= 0 else -1 for ref in graph.roots]
    free = (order for order in counting() if order not in known)
    return tuple(
        OfferedRoot(i, ref, order if order >= 0 else next(free))
        for i, (ref, order) in enumerate(zip(graph.roots, known))
    )


@dataclass(frozen=True)
class Base:
    """A full message that deltas can refer to."""

    text: str
    serial: int
    drawing: Drawing
    roots: tuple[OfferedRoot, ...]
    strings: tuple[str, ...]

    @classmethod
    def of(
        cls, drawing: Drawing, serial: int, roots: Sequence[OfferedRoot] | None = None, *, off: bool = False
    ) -> Base:
        """Encode everything; `off`: the tracker is switched off."""
        offered = offer(drawing) if roots is None else tuple(roots)
        strings = Strings()
        body = graph(drawing.snapshot, strings)
        body["roots"] = [_root(root, drawing.snapshot, strings) for root in offered]
        body |= story(drawing, strings, off)
        # The table is complete only now.
        head = {"schema": SCHEMA, "serial": serial, "strings": list(strings.index)}
        return cls(dump(head | body), serial, drawing, offered, tuple(strings.index))


def encode(drawing: Drawing, serial: int = 0, roots: Sequence[OfferedRoot] | None = None) -> str:
    """The whole picture as JSON text.

    Parameters
    ----------
    drawing
        What to show.
    serial
        Number of this message; grows from message to message of one view.
    roots
        The roots with the ids under which the page may name them. Default: as `offer` numbers them.
    """
    return Base.of(drawing, serial, roots).text


def dump(message: dict[str, Any]) -> str:
    return json.dumps(message, separators=(",", ":"))


def _root(root: OfferedRoot, snapshot: Snapshot, strings: Strings) -> dict[str, Any]:
    ref = root.ref
    return {
        "id": root.id,
        "path": strings(ref.path or ""),
        "node": ref.node,
        "type": strings(type_text(ref.dtype, ref.shape)),
        "scalar": ref.numel == 1,
        "alive": _is_alive(ref, snapshot),
        "lost": bool(ref.known_as),
        "order": root.order,
        "cells": None if root.cells is None else list(root.cells),
    }


def _is_alive(ref: TensorRef, snapshot: Snapshot) -> bool:
    """A root without a name cannot be reached from Python any more, nor can one whose node has died."""
    return ref.path is not None and not (ref.node >= 0 and snapshot.ghost[ref.node])
