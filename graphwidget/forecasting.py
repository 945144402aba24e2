"""The forecast of a call on live tensors: a snapshot of what the roots reach, then `analysis.engine`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from graphwidget.analysis import engine
from graphwidget.capture import torch_internals as internals
from graphwidget.capture.snapshot import take
from graphwidget.model import Forecast

__all__ = ["forecast"]


def forecast(
    roots: Any,
    *,
    inputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    api: Literal["backward", "autograd.grad", "grad"] = "backward",
    allow_unused: bool = True,
    grad_given: bool = False,
    freed_by: Mapping[int, int] | None = None,
    watched_from: int = 0,
    now: bool = False,
) -> Forecast:
    """Say what a backward call on these tensors would do. Nothing runs and nothing changes.

    Parameters
    ----------
    roots
        A tensor or several: those on which `backward` would be called.
    inputs
        A tensor or several: the `inputs=` of the call.
    retain_graph, create_graph, allow_unused
        As the call would get them.
    api
        ``"backward"`` or ``"autograd.grad"`` (``"grad"``): the latter takes the gradient in front of an input's
        node and does not run it.
    grad_given
        A gradient for each root is passed along, so that roots need not be scalars.
    freed_by, watched_from
        What a tracker has seen of earlier calls (see `capture.snapshot.take`).
    now
        The call follows at once. Then even those saved views are looked at whose history that may rebuild.

    Raises
    ------
    TypeError
        If something is not a tensor.
    ValueError
        If there is no root, or `inputs` is empty.
    """
    if api not in ("backward", "autograd.grad", "grad"):
        raise ValueError(f"api is 'backward' or 'autograd.grad', not {api!r}")
    outputs = _tensors(roots, "a loss, or a list of losses")
    targets = None if inputs is None else _tensors(inputs, "a tensor, or a list of tensors, as `inputs`")
    snapshot = take(
        outputs,
        inputs=targets or (),
        freed_by=freed_by,
        watched_from=watched_from,
        settle=now,
        thorough=True,
        refuses_inputs=internals.refuses_reentrant_checkpoints(),
    )
    return engine.forecast(
        snapshot,
        snapshot.roots,
        inputs=None if targets is None else snapshot.inputs,
        retain_graph=retain_graph,
        create_graph=create_graph,
        api=api,
        allow_unused=allow_unused,
        grad_given=grad_given,
    )


def _tensors(given: Any, wanted: str) -> Sequence[Any]:
    """One tensor or several as a list, or an error that says what to pass."""
    listed = list(given) if isinstance(given, (list, tuple)) else [given]
    if not listed:
        raise ValueError(f"nothing to forecast: pass {wanted}")
    for one in listed:
        if not internals.is_tensor(one) and internals.as_edge(one) is None:
            hint = " (call the module and pass its loss)" if callable(one) else ""
            raise TypeError(f"expected {wanted}, got {type(one).__name__}{hint}")
    return listed
