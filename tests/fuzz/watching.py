"""What a tracker notes while a program runs, so that a forecast can know what Python cannot see afterwards."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from graphwidget.capture import inplace

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


def noting_releases(engine: Engine) -> Engine:
    """The engine's entry, noting which in-place writes into views each call releases."""

    @functools.wraps(engine)
    def run(outputs: Any, grads: Any, retain_graph: bool, *args: Any, **kwargs: Any) -> Any:
        writes = [node for node in reachable(outputs) if type(node).__name__ == "CopySlices"]
        with inplace.releasing(writes, bool(retain_graph)):
            return engine(outputs, grads, retain_graph, *args, **kwargs)

    return run


@contextmanager
def watching(wrap: Callable[[Engine], Engine] = lambda engine: engine) -> Iterator[None]:
    """Watch everything that runs inside; `wrap` goes around the engine's entry, outside our own notes."""
    engine = torch.autograd._engine_run_backward
    torch.autograd._engine_run_backward = wrap(noting_releases(engine))
    try:
        with inplace.Watch():
            yield
    finally:
        torch.autograd._engine_run_backward = engine
