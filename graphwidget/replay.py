"""The function behind `graphwidget.find_nan`: the one that runs a backward when it is asked to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from graphwidget.arguments import check_has_graph, refuses_unknown_options
from graphwidget.notebook.session import current, current_tracker

if TYPE_CHECKING:
    import torch

    from graphwidget.model import NonFinite

__all__ = ["find_nan"]

_CALLER = 2  # frames up from a public function: past the wrapper that checks its options


@refuses_unknown_options
def find_nan(root: torch.Tensor) -> NonFinite:
    """Find the first value of a graph that is NaN or infinite: its node, its line, and the value.

    First it looks at what the graph shows of the forward: leaves, tensors with a name, saved tensors. If all that is
    finite, it runs a backward and looks at the gradients that each node returns. Nothing of yours is changed: no
    `.grad`, no version, no random number, and the graph is kept. There is no anomaly mode, so nothing runs twice.

    Parameters
    ----------
    root
        The tensor on which `backward` would be called. One of several elements gets a gradient of ones.

    Returns
    -------
    NonFinite
        What was found. `unseen` says what could not be looked at: no backward runs where it would raise, or would run
        hooks, checkpoints or functions of yours that may do something else.

    Raises
    ------
    TypeError, ValueError
        For something that is no tensor, or a tensor without a graph.

    Examples
    --------
    >>> import torch, graphwidget
    >>> x = torch.tensor([0.0, 4.0], requires_grad=True)
    >>> loss = x.sqrt().sum()
    >>> found = graphwidget.find_nan(loss)
    >>> found.node.name, found.value, found.at
    ('SqrtBackward0', 'inf', (0,))
    >>> x.grad is None  # nothing has been written
    True
    """
    from graphwidget.capture.flow.nonfinite import first_nonfinite
    from graphwidget.capture.owners import search
    from graphwidget.capture.owners.reading import locals_of
    from graphwidget.engine import forecast as engine
    from graphwidget.notebook.live import SEARCH_S, take_graphs

    check_has_graph(root, "find_nan")
    frame, loaded = sys._getframe(_CALLER), current()
    names = {**(loaded.shell.user_ns if loaded is not None else frame.f_globals), **dict(locals_of(frame))}
    graph = take_graphs([root], current_tracker(), names, asked_from=frame)
    answer = engine.forecast(graph, graph.roots, retain_graph=True, grad_given=True)
    found = search.find(names, budget_s=SEARCH_S)
    named = {id(tensor): (step.path(), tensor) for tensor, step in reversed(found.others)}
    named |= {id(one.tensor): (one.path, one.tensor) for one in reversed(found.holdings)}
    return first_nonfinite(root, graph, answer, named)
