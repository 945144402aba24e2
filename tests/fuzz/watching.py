"""Wraps the engine's entry, and records hooks as a tracker does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from graphwidget.capture.python import hooks

Engine = Callable[..., Any]


def reachable(outputs: Any) -> list[Any]:
    """Every node that a call on `outputs` can reach."""
    nodes = list(dict.fromkeys(node for node in map(_history, outputs) if node is not None))
    seen = set(nodes)
    for node in nodes:  # grows while it is read
        for after, _ in node.next_functions:
            if after is not None and after not in seen:
                seen.add(after)
                nodes.append(after)
    return nodes


def _history(output: Any) -> Any:
    try:
        return output.grad_fn
    except RuntimeError:  # a view that was made under no_grad, of a tensor that was modified since
        return None


@contextmanager
def watching(wrap: Callable[[Engine], Engine], notes: bool = True) -> Iterator[None]:
    """Wrap the engine's entry; with `notes`, record hooks and lost gradients as a tracker does."""
    engine = torch.autograd._engine_run_backward
    torch.autograd._engine_run_backward = wrap(engine)
    unwatch = hooks.watch() if notes else lambda: None
    try:
        yield
    finally:
        unwatch()
        torch.autograd._engine_run_backward = engine
