"""Views on demand: the one that a tracker's views share, or one of given tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphwidget.capture.tracker import Tracker
from graphwidget.notebook import session
from graphwidget.notebook.sources import TensorSource, TrackerSource, node_uid
from graphwidget.notebook.views.widget import AutogradView

__all__ = ["view_of"]


def view_of(
    shown: Sequence[Any],
    tracker: Tracker | None,
    names: Mapping[str, Any],
    namespace: Mapping[str, Any],
    height: int | None,
) -> AutogradView:
    """The shared view, the view of a tracker, or a view of given tensors.

    Parameters
    ----------
    shown
        The tensors, or one tracker; empty: what the recording tracker knows, else the last `track()` block.
    tracker
        The tracker that records now, None: there is none.
    names
        The variables of the frame that asks for the view. They are not kept.
    namespace
        The user's variables, a live dict that is read again later.
    height
        Pixels; None: the shared view keeps its own, the height of another one follows its content.

    Raises
    ------
    RuntimeError
        With nothing to show and without any tracker.
    """
    extension = session.current()
    size: dict[str, Any] = {} if height is None else {"height": height}
    if len(shown) == 1 and isinstance(shown[0], Tracker):
        return _of_tracker(shown[0], namespace, size)
    if not shown:
        ended = session.ended_tracker()
        tracker = tracker or (ended[0] if ended else None)
        if tracker is None:
            raise RuntimeError(
                "graphwidget.view() shows what is tracked, and nothing is: run %load_ext graphwidget (or your "
                "code inside `with graphwidget.track():`), or pass tensors: graphwidget.view(loss)."
            )
        return _of_tracker(tracker, namespace, size)
    source = TensorSource(shown, tracker or _who_recorded(shown), names, namespace)
    if extension is None:
        return AutogradView(source, **size)
    return AutogradView(source, extension.turns, rerun=extension.rerun, trying=extension.trying, **size)


def _of_tracker(tracker: Tracker, namespace: Mapping[str, Any], size: dict[str, Any]) -> AutogradView:
    """The view of everything that a tracker knows."""
    extension = session.current()
    if extension is None or extension.tracker is not tracker:
        return AutogradView(TrackerSource(tracker, lambda: namespace), **size)
    view = extension.shared_view()
    if size:
        view.height = size["height"]
    return view


def _who_recorded(tensors: Sequence[Any]) -> Tracker | None:
    """The tracker of the last `track()` block, if it knew the node of one of these tensors when the block ended."""
    ended = session.ended_tracker()
    if ended is None:
        return None
    tracker, next_uid = ended
    known = (node_uid(tensor, tracker.identity, tracker) for tensor in tensors if not getattr(tensor, "is_leaf", False))
    return tracker if any(0 <= uid < next_uid for uid in known) else None
