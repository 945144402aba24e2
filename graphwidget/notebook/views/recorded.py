"""The view of a record: of a run that was in another process, at another time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphwidget.capture.calls.hues import Hues
from graphwidget.model import Drawing, Snapshot, TensorRef
from graphwidget.notebook.sources import OutOfDate
from graphwidget.notebook.views.widget import AutogradView

if TYPE_CHECKING:
    import torch

    from graphwidget.capture.tracker import Tracker
    from graphwidget.record.run_record import RunRecord

__all__ = ["view_of_record"]

_OVER = "This is the record of a run: nothing can be run in it."


class RecordSource:
    """A record as the source of a view: it is read once, and its roots are only drawn."""

    tracker: Tracker | None = None
    is_live = False

    def __init__(self, record: RunRecord) -> None:
        self._drawing = record.drawing()
        self.hues: Hues | None = Hues.of_calls(record.calls)

    def drawing(self) -> Drawing:
        return self._drawing

    def tensor(self, ref: TensorRef, uid: int) -> torch.Tensor:
        raise OutOfDate(_OVER)

    def graph(self, tensor: torch.Tensor) -> Snapshot:
        raise OutOfDate(_OVER)

    def retaining(self) -> list[torch.Tensor]:
        return []


def view_of_record(record: RunRecord, height: int | None) -> AutogradView:
    """A view of a record. `height`: pixels; None: by the content."""
    size: dict[str, Any] = {} if height is None else {"height": height}
    return AutogradView(RecordSource(record), **size)
