"""Views on demand: the one that a tracker's views share, or one of given tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphwidget.notebook import session
from graphwidget.notebook.sources import TensorSource, TrackerSource
from graphwidget.notebook.widget import AutogradView

if TYPE_CHECKING:
    from graphwidget.capture.tracker import Tracker

__all__ = ["view_of"]


def view_of(
    tensors: Sequence[Any],
    tracker: Tracker | None,
    names: Mapping[str, Any],
    namespace: Mapping[str, Any],
    height: int | None,
) -> AutogradView:
    """The shared view, or a view of given tensors.

    Parameters
    ----------
    tensors
        What to show; empty: everything alive.
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
        Without tensors and without a tracker.
    """
    extension = session.current()
    size: dict[str, Any] = {} if height is None else {"height": height}
    if not tensors:
        if tracker is None:
            raise RuntimeError(
                "graphwidget.view() shows what is tracked, and nothing is: run %load_ext graphwidget (or your "
                "code inside `with graphwidget.track():`), or pass tensors: graphwidget.view(loss)."
            )
        if extension is not None and extension.tracker is tracker:
            view = extension.shared_view()
            if height is not None:
                view.height = height
            return view
        return AutogradView(TrackerSource(tracker, lambda: namespace), **size)
    source = TensorSource(tensors, tracker, names, namespace)
    if extension is None:
        return AutogradView(source, **size)
    return AutogradView(source, extension.turns, rerun=extension.rerun, **size)
