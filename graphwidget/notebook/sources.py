"""Sources of a view: everything that the tracker knows, or the graphs of given tensors.

A source also finds the tensor behind a root again when a button asks for it. It keeps no tensor alive.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from graphwidget.model import Drawing, Finding, Snapshot, TensorRef

if TYPE_CHECKING:
    import torch

    from graphwidget.capture.calls.hues import Hues
    from graphwidget.capture.graph.identity import Identity
    from graphwidget.capture.owners.search import Search
    from graphwidget.capture.tracker import Tracker

__all__ = ["OutOfDate", "Source", "TensorSource", "TrackerSource", "node_uid"]

SEARCH_S = 0.5  # a click may take longer to find its tensor than a cell's end may


class OutOfDate(LookupError):
    """The subject of a request no longer exists."""


class Source(Protocol):
    """The source of a view's pictures."""

    tracker: Tracker | None

    @property
    def hues(self) -> Hues | None:
        """What assigns the looks of roots; None: the picture does."""

    @property
    def is_live(self) -> bool:
        """Whether pictures are of now. Else they are of the moment at which the tracker ended: nothing can be run."""

    def drawing(self) -> Drawing:
        """The present picture."""

    def tensor(self, ref: TensorRef, uid: int) -> torch.Tensor:
        """The tensor of a root, if it is still the one with node `uid`.

        Raises
        ------
        OutOfDate
            If it is gone or has another graph now.
        """

    def graph(self, tensor: torch.Tensor) -> Snapshot:
        """The graph behind a tensor, read again and in full: its only root is that tensor."""

    def retaining(self) -> list[torch.Tensor]:
        """Non-leaf tensors whose `.grad` a backward writes too, as far as they can be found."""


class TrackerSource:
    """Everything alive that the user can name."""

    def __init__(
        self,
        tracker: Tracker,
        namespace: Callable[[], Mapping[str, Any]],
        shell: Any = None,
        tried: Callable[[Sequence[Finding]], tuple[Finding, ...]] = tuple,
    ) -> None:
        self.tracker: Tracker | None = tracker
        self._tracker = tracker
        self._namespace = namespace
        self._shell = shell
        self._tried = tried  # gives findings what came of trials

    @property
    def hues(self) -> Hues | None:
        return self._tracker.hues

    @property
    def is_live(self) -> bool:
        return self._tracker.running

    def drawing(self) -> Drawing:
        from graphwidget.diagnosis.edited_files import sentence

        drawing = self._tracker.drawing()
        drawing = replace(drawing, findings=self._tried(drawing.findings))
        said = tuple(map(sentence, self._tracker.provenance.book.edited_files()))
        if not said:
            return drawing
        return replace(drawing, snapshot=replace(drawing.snapshot, notes=(*drawing.snapshot.notes, *said)))

    def tensor(self, ref: TensorRef, uid: int) -> torch.Tensor:
        search = self.search()
        for path in ref.paths:
            tensor = search.tensor_at(path)
            if tensor is not None and node_uid(tensor, self._tracker.identity, self._tracker) == uid:
                return tensor
        raise OutOfDate(f"`{ref.path}` is gone, or has been computed again.")

    def graph(self, tensor: torch.Tensor) -> Snapshot:
        from graphwidget.notebook.live import take_graphs

        return take_graphs([tensor], self._tracker, self._namespace(), asked_from=sys._getframe())

    def retaining(self) -> list[torch.Tensor]:
        return _retaining(holding.tensor for holding in self.search().holdings if not holding.is_leaf)

    def search(self) -> Search:
        """Every path to a tensor. It holds them: drop it before user code runs."""
        from graphwidget.capture.owners import search as owners

        return owners.find(dict(self._namespace()), shell=self._shell, budget_s=SEARCH_S)


class TensorSource:
    """The graphs of given tensors, as long as one of them lives; then the last picture stays.

    A weak reference to a leaf could make `module.to()` fail (torch swaps no tensor that has one), so a
    leaf that was passed is drawn once and not followed.
    """

    def __init__(
        self,
        tensors: Sequence[Any],
        tracker: Tracker | None,
        names: Mapping[str, Any],
        namespace: Mapping[str, Any],
    ) -> None:
        import torch

        from graphwidget.capture.graph.identity import Identity

        self.tracker = tracker
        self._identity = tracker.identity if tracker is not None else Identity()
        self._namespace = namespace
        self._refs = [weakref.ref(t) for t in tensors if isinstance(t, torch.Tensor) and not t.is_leaf]
        self._last = self._draw(tensors, names)
        # Local variables must not be kept, only what they called these tensors.
        self._names = {id(t): ref.path for t, ref in zip(tensors, self._last.snapshot.roots)}

    @property
    def hues(self) -> Hues | None:
        return self.tracker.hues if self.tracker is not None else None

    @property
    def is_live(self) -> bool:
        return True  # the graph is read again each time

    def drawing(self) -> Drawing:
        alive = self._alive()
        if alive:
            named = {path: t for t in alive if (path := self._names.get(id(t))) and path.isidentifier()}
            self._last = self._draw(alive, {**named, **self._namespace})
        elif self.tracker is not None:
            self._last = self._with_story(self._last)
        return self._last

    def tensor(self, ref: TensorRef, uid: int) -> torch.Tensor:
        for tensor in self._alive():
            if node_uid(tensor, self._identity, self.tracker) == uid:
                return tensor
        raise OutOfDate(f"`{ref.path or 'this tensor'}` is gone.")

    def graph(self, tensor: torch.Tensor) -> Snapshot:
        from graphwidget.notebook.live import take_graphs

        names = self._namespace
        return take_graphs([tensor], self.tracker, names, identity=self._identity, asked_from=sys._getframe())

    def retaining(self) -> list[torch.Tensor]:
        return _retaining(self._alive())

    def _alive(self) -> list[torch.Tensor]:
        return [tensor for ref in self._refs if (tensor := ref()) is not None]

    def _draw(self, tensors: Sequence[Any], names: Mapping[str, Any]) -> Drawing:
        import torch

        from graphwidget.notebook.live import take_graphs

        snapshot = take_graphs(tensors, self.tracker, names, identity=self._identity)
        return self._with_story(Drawing(snapshot, torch=torch.__version__))

    def _with_story(self, drawing: Drawing) -> Drawing:
        """Calls, events and findings, if a tracker records them."""
        if self.tracker is None:
            return drawing
        events = self.tracker.events
        here = drawing.snapshot.index_of.keys()
        findings = [f for f in self.tracker.findings() if not here.isdisjoint({f.node_uid, *f.uids})]
        return replace(
            drawing,
            calls=self.tracker.calls,
            events=events,
            findings=tuple(findings),
            current_event=events[-1].id if events else -1,
            busy=self.tracker.busy,
            steps=self.tracker.write_recorder.log.steps(),
        )


def node_uid(tensor: torch.Tensor, identity: Identity, tracker: Tracker | None) -> int:
    """Uid of a tensor's node."""
    from graphwidget.capture.graph.snapshot import take

    with nullcontext() if tracker is None else tracker.lock:
        snapshot = take([tensor], identity=identity, slots=False)
    return snapshot.uid[snapshot.roots[0].node] if snapshot.roots and snapshot.roots[0].node >= 0 else -1


def _retaining(tensors: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    from graphwidget import torch_internals as internals

    return [t for t in tensors if not internals.maybe_stale_view(t) and internals.retains_grad(t)]
