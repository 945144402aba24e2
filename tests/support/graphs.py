"""Small graphs and how tests read their snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from graphwidget.model import Node, Snapshot


@dataclass
class Held:
    """An owner as `take` wants it."""

    path: str
    tensor: Any
    kind: str = "variable"
    containers: tuple[tuple[str, int], ...] = ()
    bounded: bool = False
    anchor: int = 0


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


def node(snapshot: Snapshot, name: str) -> Node:
    found = [n for n in snapshot.nodes if n.name == name]
    assert len(found) == 1, [n.name for n in snapshot.nodes]
    return found[0]


def states(snapshot: Snapshot, name: str) -> dict[str, str]:
    return {slot.name: slot.state.word for slot in node(snapshot, name).saved}
