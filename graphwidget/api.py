"""The functions behind `graphwidget.view`, `snapshot`, `forecast`, `steps`, `predict`, `explain` and `track`.

They work in a notebook with the extension, in a script, in a test, in marimo. Misuse is an error that
names the next step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from graphwidget.arguments import check_has_graph, no_grad_reason, refuses_unknown_options, tensors_in
from graphwidget.notebook.session import begin_tracking, current, current_tracker, end_tracking, ended_tracker

if TYPE_CHECKING:
    from types import FrameType

    import torch
    from torch.autograd.graph import GradientEdge

    from graphwidget.capture.tracker import Tracker
    from graphwidget.model import BackwardCall, Finding, Findings, Forecast, Prediction, Snapshot, Steps
    from graphwidget.notebook.views.widget import AutogradView

__all__ = ["explain", "forecast", "predict", "snapshot", "steps", "track", "view"]

_CALLER = 2  # frames up from a public function: past the wrapper that checks its options


# -- the functions -----------------------------------------------------------------------------------


@refuses_unknown_options
def snapshot(*tensors: torch.Tensor | GradientEdge) -> Snapshot:
    """The autograd graph now, as plain data. Looking at it changes nothing.

    Parameters
    ----------
    *tensors
        Where to start. None: every tensor alive that has a name (in the notebook, or where this is called).

    Raises
    ------
    TypeError, ValueError
        For something that is no tensor, or a tensor without a graph.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> graphwidget.snapshot(w.exp().sum())
    <Snapshot: 3 nodes, 1 slot, 1 root>
    """
    for tensor in tensors:
        check_has_graph(tensor, "snapshot")
    tracker = current_tracker()
    if not tensors and tracker is not None:
        return tracker.snapshot()
    from graphwidget.notebook import live

    names = _names(sys._getframe(_CALLER))
    return live.take_graphs(tensors, tracker, names) if tensors else live.take_named(names)


@refuses_unknown_options
def forecast(
    roots: torch.Tensor | GradientEdge | Sequence[torch.Tensor | GradientEdge],
    *,
    inputs: torch.Tensor | Iterable[torch.Tensor] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    api: str = "backward",
    allow_unused: bool = True,
    gradient: bool = True,
) -> Forecast:
    """What a backward call would do, without running anything.

    Parameters
    ----------
    roots
        The tensor or tensors that backward would be called on. One that needs no grad is no misuse: the
        answer is then that the call would raise, and why.
    inputs, retain_graph, create_graph
        As for `torch.autograd.backward`.
    api
        ``"backward"`` or ``"grad"``: `torch.autograd.grad` captures a non-leaf input, `backward(inputs=)` runs it.
    allow_unused
        Only for ``"grad"``.
    gradient
        Whether roots with more than one element are handed a gradient, as in ``y.backward(torch.ones_like(y))``
        and by the view's buttons. Without one the call would raise: ``not_scalar``.

    Raises
    ------
    TypeError, ValueError
        For something that is no tensor, no roots at all, or an unknown `api`.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.exp().sum()
    >>> graphwidget.forecast(loss).ok
    True
    >>> loss.backward()
    >>> answer = graphwidget.forecast(loss)
    >>> answer.ok, answer.reason, answer.fails_at.name
    (False, 'freed', 'ExpBackward0')
    """
    from graphwidget.engine import forecast as engine
    from graphwidget.notebook.live import take_graphs

    starts = tensors_in(roots, "forecast")
    ends = _inputs(inputs, api, "forecast")
    frame = sys._getframe(_CALLER)
    graph = take_graphs(starts, current_tracker(), _names(frame), inputs=ends or (), asked_from=frame)
    answer = engine.forecast(
        graph,
        graph.roots,
        inputs=None if ends is None else graph.inputs,
        retain_graph=retain_graph,
        create_graph=create_graph,
        api=api,  # type: ignore[arg-type]
        allow_unused=allow_unused,
        grad_given=gradient,
    )
    return _with_next_step(answer, [*starts, *(ends or ())])


@refuses_unknown_options
def steps(
    call: torch.Tensor | GradientEdge | Sequence[torch.Tensor | GradientEdge] | BackwardCall,
    *,
    inputs: torch.Tensor | Iterable[torch.Tensor] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    api: str = "backward",
    gradient: bool = True,
) -> Steps:
    """A backward call node by node, in the engine's order. Nothing runs.

    For each node: the gradient that arrives, what it saved, what it frees, and where its gradients go.

    Parameters
    ----------
    call
        The tensor or tensors that backward would be called on; or a call that was made, from `Tracker.calls`.
    inputs, retain_graph, create_graph, api, gradient
        As for `graphwidget.forecast`; only for a call that has not been made.

    Raises
    ------
    TypeError, ValueError
        For something that is no tensor and no call, no roots at all, or an unknown `api`.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.exp().sum()
    >>> print(graphwidget.steps(loss)[1].text)
    A gradient float32[3] would arrive. It saved result float32[3]. It would free result, 12 B. It would hand a \
gradient to the leaf w (float32[3]).
    >>> with graphwidget.track() as tracker:
    ...     loss = w.exp().sum()
    ...     loss.backward()
    >>> print(graphwidget.steps(tracker.calls[0]).ending)
    3 nodes ran and freed 1 saved tensor, 12 B. The .grad of w was set.
    """
    from graphwidget.diagnosis.steps.calls import ahead, past
    from graphwidget.diagnosis.written import Written
    from graphwidget.model import BackwardCall
    from graphwidget.notebook.live import take_graphs

    if isinstance(call, BackwardCall):
        return past(call)
    starts, ends, frame = tensors_in(call, "steps"), _inputs(inputs, api, "steps"), sys._getframe(_CALLER)
    graph = take_graphs(starts, current_tracker(), _names(frame), inputs=ends or (), asked_from=frame)
    handed = gradient and any(root.numel != 1 or "complex" in root.dtype for root in graph.roots)
    written = Written(handed, retain_graph, create_graph, ends is not None)
    return ahead(graph, written, inputs=None if ends is None else graph.inputs, api=api)


@refuses_unknown_options
def predict(
    roots: torch.Tensor | GradientEdge | Sequence[torch.Tensor | GradientEdge],
    *,
    fails: bool | str | None = None,
    frees: str | Iterable[str] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    gradient: bool = False,
) -> Prediction:
    """Say what a backward call does before it is made, and learn how right that is. Nothing runs.

    It is compared with the forecast at once, so that a grader needs one line: ``assert gw.predict(loss, fails=False)``.
    Who then makes the call compares it with what happened: ``said.check()``. Without any prediction the answer tells
    what there is to predict.

    Parameters
    ----------
    roots
        The tensor or tensors that backward would be called on.
    fails
        Whether the call raises; or the name of the node at which it does. None: nothing is said of that.
    frees
        The saved tensors that it frees, each as ``"MulBackward0.self"``; ``[]``: none. Of several nodes of one name
        number 0 is the one made first: ``"MulBackward0[0].self"``.
    retain_graph, create_graph
        As for `torch.autograd.backward`.
    gradient
        Whether the call is handed a gradient, as in ``y.backward(torch.ones_like(y))``.

    Raises
    ------
    TypeError, ValueError
        For something that is no tensor; for a node or saved tensor that is not there, with those that are.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = (w * w).exp().sum()
    >>> said = graphwidget.predict(loss, fails=False, frees=["MulBackward0.self", "ExpBackward0.result"])
    >>> said.score
    0.75
    >>> print(said.explain())
    Right: loss.backward() would not raise: each node that runs has what it needs.
    Right: MulBackward0.self would be freed: MulBackward0 runs, and nothing retains the graph.
    Right: ExpBackward0.result would be freed: ExpBackward0 runs, and nothing retains the graph.
    Missed: MulBackward0.other would be freed, too: MulBackward0 runs, and nothing retains the graph.
    """
    from graphwidget.diagnosis.prediction.predict import predicted
    from graphwidget.diagnosis.written import Written
    from graphwidget.engine import forecast as engine
    from graphwidget.notebook.live import take_graphs

    starts, tracker, frame = tensors_in(roots, "predict"), current_tracker(), sys._getframe(_CALLER)
    graph = take_graphs(starts, tracker, _names(frame), asked_from=frame)
    answer = engine.forecast(
        graph, graph.roots, retain_graph=retain_graph, create_graph=create_graph, grad_given=gradient
    )
    call = Written(gradient, retain_graph, create_graph)
    return predicted(graph, _with_next_step(answer, starts), call, fails, frees, tracker)


@refuses_unknown_options
def explain(error_or_tensor: BaseException | torch.Tensor | None = None) -> Findings:
    """What went wrong, or would: which call freed what, what carried it over, and what helps.

    The answer is a list of findings. Printed, or at the end of a cell, it is read as text.

    Parameters
    ----------
    error_or_tensor
        An exception that a cell or a backward call raised, a tensor whose backward would raise, or nothing: the last
        error, else what looks wrong now. After a `track()` block of a script: an error of it, or nothing.

    Raises
    ------
    TypeError, ValueError
        For something else, or a tensor without a graph.
    RuntimeError
        If nothing is tracked: what was not watched is not known.

    Examples
    --------
    >>> import torch, graphwidget
    >>> with graphwidget.track():
    ...     w = torch.ones(3, requires_grad=True)
    ...     loss = w.exp().sum()
    ...     loss.backward()
    ...     try:
    ...         loss.backward()
    ...     except RuntimeError as error:
    ...         findings = graphwidget.explain(error)
    >>> findings[0].kind, findings[0].node
    ('second_backward', 'ExpBackward0')
    """
    of_tensor = error_or_tensor is not None and not isinstance(error_or_tensor, BaseException)
    if of_tensor:
        check_has_graph(error_or_tensor, "explain")
    tracker, ended = current_tracker(), ended_tracker()
    if tracker is None and ended is not None and not of_tensor:
        tracker = ended[0]
    if tracker is None:
        raise RuntimeError(
            "graphwidget.explain() tells what was recorded, and nothing is: run %load_ext graphwidget before your "
            "cells, or your code inside `with graphwidget.track():`."
        )
    from graphwidget.model import Findings

    found = Findings(tracker.findings())
    if error_or_tensor is None:
        return found
    if isinstance(error_or_tensor, BaseException):
        return Findings(finding for finding in found if _is_of(finding, tracker, error_or_tensor))
    from graphwidget.notebook.live import take_graphs

    below = set(take_graphs([error_or_tensor], tracker, {}).uid)
    return Findings(finding for finding in found if below & {finding.node_uid, *finding.uids})


def _is_of(finding: Finding, tracker: Tracker, error: BaseException) -> bool:
    if finding.call is None:
        raised = (run for run in tracker.runs.values() if run.error == str(error))
        return any(
            run.error_place is not None and run.error_place == (finding.failed_at or finding.made_at) for run in raised
        )
    calls = (call for call in tracker.calls if call.n in (finding.call, *finding.also))
    return any(call.result == "raised" and call.error == str(error) for call in calls)


@refuses_unknown_options
def view(*shown: torch.Tensor | GradientEdge | Tracker, height: int | None = None) -> AutogradView:
    """The live view: of everything alive, of a tracker, or of the graphs of given tensors.

    Without arguments it is the same widget as that of ``%graphwidget``, however often it is shown; outside a notebook
    it shows the `track()` block that is running, or the last one.

    Parameters
    ----------
    *shown
        Tensors; they are not kept alive: once they are gone, their last picture stays. Or the tracker of a `track()`
        block; after the block the view shows the block's end, and nothing can be run in it.
    height
        Pixels. Without it the live view keeps the height to which it was dragged.

    Raises
    ------
    TypeError, ValueError
        For something that is no tensor, or a tensor without a graph.
    RuntimeError
        Without arguments, if nothing is or was tracked.

    Examples
    --------
    >>> import torch, graphwidget
    >>> w = torch.ones(3, requires_grad=True)
    >>> loss = w.exp().sum()
    >>> shown = graphwidget.view(loss, height=300)  # the last value of a cell is displayed
    >>> print(shown.as_text().splitlines()[0])
    Autograd graph: 2 nodes, 1 leaf, 1 root; 12 B held
    >>> shown.close()
    """
    from graphwidget.capture.tracker import Tracker
    from graphwidget.notebook.views.on_demand import view_of

    if not (len(shown) == 1 and isinstance(shown[0], Tracker)):
        for tensor in shown:
            check_has_graph(tensor, "view")
    frame = sys._getframe(_CALLER)
    return view_of(shown, current_tracker(), _names(frame), _namespace(frame), height)


@contextmanager
def track(
    *, code: Sequence[str] = (), record: str | PathLike[str] | None = None, max_mb: float = 64.0
) -> Iterator[Tracker]:
    """Track outside a notebook: ``with graphwidget.track() as tracker: ...``.

    Parameters
    ----------
    code
        Packages, modules or folders whose lines are recorded as those of your own files are, although they are
        installed: ``code=["mylib"]``. With ``-`` in front, those whose lines are not: ``code=["-helpers"]``.
    record
        A file (``run.gwz``) to write a record to, which `graphwidget.load` opens. An earlier record there gets
        another name; if no file can be written, that is said, and the block runs without a record.
    max_mb
        Bound of that file, in megabytes (10**6 bytes).

    Raises
    ------
    ValueError
        For a name of no file, folder or module, or a bound below 1 MB.

    Examples
    --------
    >>> import torch, graphwidget
    >>> with graphwidget.track() as tracker:
    ...     w = torch.ones(3, requires_grad=True)
    ...     w.exp().sum().backward()
    >>> [(call.result, call.freed_slots) for call in tracker.calls]
    [('ok', 1)]
    """
    from graphwidget.capture import scripts as capture
    from graphwidget.diagnosis.diagnose import diagnose
    from graphwidget.engine import forecast as engine
    from graphwidget.notebook.notes import explain_call
    from graphwidget.record.recording import recorded

    # 3 frames up: past this function and the two of contextlib's that enter it and the one inside.
    with (
        recorded(record, max_mb) as follow,
        capture.track(
            forecaster=engine.forecast, diagnose=diagnose, explain=explain_call, code=code, depth=4
        ) as tracker,
    ):
        follow(tracker)
        begin_tracking(tracker)
        try:
            yield tracker
        finally:
            end_tracking(tracker)


# -- helpers -------------------------------------------------------------------------------------------


def _namespace(frame: FrameType) -> dict[str, Any]:
    """The user's variables: those of the notebook, else the global ones of the code in `frame`. A live dict."""
    loaded = current()
    return loaded.shell.user_ns if loaded is not None else frame.f_globals


def _names(frame: FrameType) -> dict[str, Any]:
    """The same with the local variables of `frame`. It holds them: not for keeping."""
    from graphwidget.capture.owners.reading import locals_of

    # Reading `frame.f_locals` would leave a dict in the frame that keeps every local alive.
    return {**_namespace(frame), **dict(locals_of(frame))}


def _inputs(inputs: Any, api: str, function: str) -> list[Any] | None:
    """The tensors of ``inputs=``; None: there are none.

    Raises
    ------
    TypeError, ValueError
        If one is no tensor; for an unknown `api`, or one that needs inputs.
    """
    ends = None if inputs is None else tensors_in(inputs, function)
    if api not in ("backward", "grad", "autograd.grad"):
        raise ValueError(f'graphwidget.{function}(): api is "backward" or "grad", not {api!r}.')
    if api != "backward" and ends is None:
        raise ValueError(f'graphwidget.{function}(): api="grad" needs inputs=, as torch.autograd.grad does.')
    return ends


def _with_next_step(answer: Forecast, tensors: Sequence[Any]) -> Forecast:
    """A forecast that says why no grad arrives also says what to do about it."""
    if answer.reason != "no_grad":
        return answer
    reason = next((text for text in map(no_grad_reason, tensors) if text), "")
    return replace(answer, why=reason or answer.why)
