from __future__ import annotations

import base64
import gc
import json
import threading
from array import array
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import anywidget
import build
import pytest
from build import N

from graphwidget.capture.calls.hues import Hues
from graphwidget.model import Drawing, Event, SlotState, Snapshot, TensorRef
from graphwidget.notebook.requests.offers import Offers
from graphwidget.notebook.views import display
from graphwidget.notebook.views import widget as module
from graphwidget.notebook.views.widget import AutogradView


def graph(nodes: int = 3, state: SlotState = SlotState.HELD, paths: tuple[str, ...] = ()) -> Snapshot:
    """A chain with one saved tensor per node; the first nodes are roots with these names."""
    chain = [N("ExpBackward0", (i + 1,) if i + 1 < nodes else (), (state,)) for i in range(nodes)]
    return build.graph(*chain, roots=tuple(TensorRef(i, paths=(path,)) for i, path in enumerate(paths)))


class FakeTracker:
    """The part of the tracker that a view listens to."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[Event], None]] = []
        self.busy: str | None = None
        self.running = True
        self.problems: list[str] = []
        self.hues = Hues()

    def subscribe(self, callback: Callable[[Event], None]) -> Callable[[], None]:
        self.callbacks.append(callback)
        return lambda: self.callbacks.remove(callback) if callback in self.callbacks else None

    def event(self) -> None:
        for callback in list(self.callbacks):
            callback(Event(0, "call", 1))


class FakeSource:
    """Shows what a test puts into it."""

    is_live = True

    def __init__(self) -> None:
        self.tracker: Any = FakeTracker()
        self.hues = self.tracker.hues
        self.shown = Drawing(graph())
        self.drawn = 0

    def drawing(self) -> Drawing:
        self.drawn += 1
        return replace(self.shown, busy=self.tracker.busy)


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


def updates(view: AutogradView) -> list[dict]:
    """The state messages that the view sends from now on."""
    sent: list[dict] = []

    def publish(message: dict, buffers: object = None) -> None:
        if message.get("method") == "update":
            sent.append(message["state"])

    view._send = publish  # type: ignore[method-assign]
    return sent


def test_it_is_an_anywidget_with_the_traits_of_the_page(source: FakeSource) -> None:
    view = AutogradView(source)
    assert isinstance(view, anywidget.AnyWidget)
    assert {"wire", "delta", "height", "busy", "_esm"} <= set(view.keys)
    assert view.height == 0 and AutogradView(source, height=300).height == 300
    assert json.loads(view.wire)["n"] == 3


def test_no_name_of_ours_hides_one_of_ipywidgets() -> None:
    class Empty(anywidget.AnyWidget):
        pass

    own = vars(AutogradView).keys() - vars(Empty).keys()
    assert own & set(dir(anywidget.AnyWidget)) == {"__init__", "__doc__", "_send", "close", "_repr_mimebundle_"} & own


def test_freed_slots_travel_as_a_delta_and_a_new_graph_as_a_new_base(source: FakeSource) -> None:
    view = AutogradView(source)
    base = view.wire
    source.shown = Drawing(graph(state=SlotState.FREED))
    source.tracker.event()
    assert view.wire == base and json.loads(view.delta)["slotState"] == [[0, 1, "AD"]], "all three"
    assert json.loads(view.delta)["base"] == json.loads(base)["serial"]
    source.shown = Drawing(graph(4))
    source.tracker.event()
    assert view.wire != base and view.delta == "" and json.loads(view.wire)["n"] == 4


def test_one_event_is_one_message(source: FakeSource) -> None:
    view = AutogradView(source)
    sent = updates(view)
    source.tracker.busy = "In[2] is running"
    source.shown = Drawing(graph(5))
    view.refresh()
    assert [set(state) for state in sent] == [{"wire", "busy"}]


def test_while_a_cell_runs_there_are_at_most_ten_messages_a_second(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(module.time, "thread_time", lambda: clock.now)
    view = AutogradView(source)
    sent = updates(view)
    source.tracker.busy = "In[2] is running"
    for i in range(1000):  # a loop of two seconds
        clock.now += 0.002
        source.shown = Drawing(graph(3 + i))
        source.tracker.event()
    assert 10 <= len(sent) <= 21
    source.tracker.busy = None
    source.shown = Drawing(graph(7))
    source.tracker.event()
    assert json.loads(view.wire)["n"] == 7 and view.busy == "", "the end is always sent"


def test_drawing_takes_a_small_share_of_a_running_cell(source: FakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(module.time, "thread_time", lambda: clock.now)
    view = AutogradView(source)
    slow = source.drawing

    def drawing() -> Drawing:
        clock.now += 0.5
        return slow()

    monkeypatch.setattr(source, "drawing", drawing)
    source.tracker.busy = "In[2] is running"
    view.refresh()
    source.drawn = 0
    for _ in range(1000):
        clock.now += 0.1
        source.tracker.event()
    assert source.drawn <= 100 / 20


def test_a_busy_machine_does_not_make_the_picture_stand_still(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(module.time, "thread_time", lambda: 0.0)
    view = AutogradView(source)
    quick = source.drawing

    def drawing() -> Drawing:
        clock.now += 0.5  # other programs ran meanwhile
        return quick()

    monkeypatch.setattr(source, "drawing", drawing)
    source.tracker.busy = "In[2] is running"
    view.refresh()
    source.drawn = 0
    for _ in range(100):
        clock.now += 0.2
        source.tracker.event()
    assert source.drawn == 100


def test_a_failure_while_drawing_is_shown_and_the_rest_goes_on(source: FakeSource) -> None:
    view = AutogradView(source)
    good, source.shown = source.shown, None  # type: ignore[assignment]
    source.tracker.event()
    source.shown = good
    source.tracker.event()
    assert "could not follow this: TypeError" in view.wire


def test_problems_of_the_tracker_are_shown(source: FakeSource) -> None:
    source.tracker.problems = [f"problem {i}" for i in range(9)]
    notes = json.loads(AutogradView(source).wire)
    shown = [notes["strings"][i] for i in notes["notes"]]
    assert len(shown) == 5 and shown[-1].endswith("problem 8")


def test_closing_lets_go_of_everything(source: FakeSource) -> None:
    view = AutogradView(source)
    view.close()
    view.close()
    assert view.closed and source.tracker.callbacks == []
    assert [held for held in gc.get_referents(view.__dict__, view._actions.__dict__) if held is source] == []
    source.drawn = 0
    view.refresh()
    assert source.drawn == 0


def test_standing_still_keeps_the_last_picture(source: FakeSource) -> None:
    source.shown = Drawing(graph(paths=("loss",)))
    view = AutogradView(source)
    view.stand_still("graphwidget has been unloaded.")
    last = json.loads(view.wire)
    assert last["n"] == 3 and last["status"]["state"] == "off" and last["roots"] == []
    assert source.tracker.callbacks == []


def test_text_plain_is_the_text_picture(source: FakeSource) -> None:
    source.tracker.busy = "In[2] is running"
    view = AutogradView(source)
    data, metadata = view._repr_mimebundle_()
    assert data["text/plain"].startswith("Autograd graph: 3 nodes") and "is running" not in data["text/plain"]
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == view.model_id
    png = base64.b64decode(data["image/png"])
    assert png.startswith(b"\x89PNG") and metadata["image/png"]["width"] > 100


def test_who_runs_a_notebook_for_a_file_gets_a_picture_and_no_widget(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked_by(content: dict[str, object], **variables: str) -> set[str]:
        shell = SimpleNamespace(kernel=SimpleNamespace(get_parent=lambda channel: {"content": content}))
        monkeypatch.setattr(display, "get_ipython", lambda: shell)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        data, _ = AutogradView(source)._repr_mimebundle_()
        return {kind for kind in data if kind != "text/plain"}

    widget = "application/vnd.jupyter.widget-view+json"
    assert asked_by({"allow_stdin": True}) == asked_by({}) == {widget, "image/png"}
    assert asked_by({"allow_stdin": False}) == {"image/png"}
    assert asked_by({"allow_stdin": False}, VOILA_BASE_URL="/") == {widget, "image/png"}


def test_a_picture_that_fails_leaves_the_widget_and_the_text(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(display.raster, "to_raster", broken)
    data, _ = AutogradView(source)._repr_mimebundle_()
    assert data.keys() == {"application/vnd.jupyter.widget-view+json", "text/plain"}


def test_a_message_is_answered_by_a_message(source: FakeSource) -> None:
    view = AutogradView(source)
    sent: list = []
    view.send = sent.append  # type: ignore[method-assign]
    view._handle_custom_msg({"id": 1, "verb": "ping"}, [])
    view._handle_custom_msg("nonsense", [])
    assert sent[0] == {"id": 1, "ok": True, "result": {"busy": None}}
    assert sent[1]["ok"] is False and sent[1]["id"] is None


def test_two_threads_that_draw_do_not_wait_for_each_other(source: FakeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """One holds the tracker's lock and reports an event, the other draws and wants that lock."""
    view = AutogradView(source)
    lock, drawing = threading.Lock(), threading.Event()
    quick = source.drawing

    def locked() -> Drawing:
        drawing.set()
        assert lock.acquire(timeout=10)
        lock.release()
        return quick()

    monkeypatch.setattr(source, "drawing", locked)
    lock.acquire()
    thread = threading.Thread(target=view.refresh)
    thread.start()
    assert drawing.wait(10)
    source.shown = Drawing(graph(6))
    source.tracker.event()  # returns at once: the other thread draws this, too
    lock.release()
    thread.join(10)
    assert not thread.is_alive() and json.loads(view.wire)["n"] == 6


def test_a_missing_bundle_says_so_on_the_page(
    source: FakeSource, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(module, "STATIC", tmp_path)
    assert "missing from this installation" in AutogradView(source)._esm


def test_a_root_keeps_its_id_and_a_name_keeps_its_look() -> None:
    offers = Offers()
    first = offers.update(Drawing(graph(paths=("a", "b"))))
    again = offers.update(Drawing(graph(state=SlotState.FREED, paths=("a", "b"))))
    assert (
        [(r.id, r.order) for r in first] == [(r.id, r.order) for r in again] == [(1, 1), (2, 0)]
    )  # `b` was made first
    only = graph(paths=("a", "b"))
    (left,) = offers.update(Drawing(replace(only, roots=only.roots[1:])))
    assert (left.id, left.order) == (2, 0) and set(offers.current) == {2}
    anew = replace(only, uid=array("q", [50, 51, 52]))
    new_a, new_b = offers.update(Drawing(anew))
    assert new_b.id not in (1, 2) and new_b.order == 0, "computed anew: a new id, the old look"
    assert new_a.order == 1
