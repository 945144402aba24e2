"""Work that is left until the kernel is idle: it is never seen half done."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import fields, replace
from itertools import groupby, islice

import pytest
import torch
from cells import Notebook as Cells
from graphs import Held

from graphwidget import torch_internals as ti
from graphwidget.capture.graph import deep, pieces, slots, walk
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.pieces import AtLeast, WorkLock, at_once, completed
from graphwidget.capture.graph.snapshot import take, taking
from graphwidget.capture.policy import TrackerPolicy
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.model import Event, Snapshot


class Idle:
    """Stands for the event loop of a kernel: calls the scheduled functions when a test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.there = True

    def __call__(self) -> Callable[[float, Callable[[], None]], object] | None:
        return self.later if self.there else None

    def later(self, _seconds: float, call: Callable[[], None]) -> None:
        self.waiting.append(call)

    def step(self) -> None:
        self.waiting.pop(0)()

    def run(self) -> int:
        """Call scheduled functions until none is left; returns how many were called."""
        slices = 0
        while self.waiting:
            self.step()
            slices += 1
        return slices


class Notebook(Cells):
    def __init__(self, idle: Idle) -> None:
        # One node is already too many to be read at once.
        super().__init__(diagnose=diagnose, idle=idle, policy=TrackerPolicy(read_at_once=0))
        self.idle = idle

    def recorded(self) -> int:
        """Number of events so far. Reading it completes no pending work."""
        return self.tracker.history.next_event


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every piece takes a slice."""
    monkeypatch.setattr(walk, "PIECE", 2)
    monkeypatch.setattr(deep, "PIECE", 2)
    monkeypatch.setattr(slots, "PIECE", 2)
    monkeypatch.setattr(pieces, "SLICE_SECONDS", 0)


@pytest.fixture
def notebook(small: None) -> Iterator[Notebook]:
    made = Notebook(Idle())
    yield made
    made.tracker.stop()
    assert list(made.tracker.problems) == [] and made.errors == []


CELLS = [
    "torch.manual_seed(0)\nw = torch.rand(3, requires_grad=True)\nh = w\nfor _ in range(9):\n    h = (h * w).sin()",
    "1",
    "loss = (h * h).sum()",
    "loss.backward()",
    "h = h.exp()",
    "with torch.no_grad():\n    w.mul_(2)",
    "del loss",
]


def plain(snapshot: Snapshot) -> dict[str, object]:
    """A snapshot without what differs between two runs of one program: sequence numbers and addresses."""
    first = min((seq for seq in snapshot.seq if seq >= 0), default=0)
    columns = {field.name: getattr(snapshot, field.name) for field in fields(snapshot)}
    numbers = [max(-1, seq - first) for seq in snapshot.seq]
    leaves = {index: replace(leaf, memory=-1) for index, leaf in snapshot.leaves.items()}
    storages = (snapshot.storages.bytes, snapshot.storages.owners)
    return {**columns, "seq": numbers, "leaves": leaves, "storages": storages}


@pytest.mark.usefixtures("small")
def test_what_is_read_in_slices_is_what_is_read_at_once() -> None:
    found = []
    for idle_is_there in (False, True):
        notebook = Notebook(Idle())
        notebook.idle.there = idle_is_there
        for cell in CELLS:
            before = notebook.recorded()
            notebook.run(cell)
            assert not idle_is_there or notebook.recorded() == before + ("backward" in cell)
            slices = notebook.idle.run()
            assert (slices > 3) == idle_is_there
            assert notebook.recorded() > before
        found.append([(e.kind, e.cell, e.nodes, e.held_bytes, plain(e.snapshot)) for e in notebook.tracker.events])
        notebook.tracker.stop()
    assert found[0] == found[1] and len(found[0]) == len(CELLS) + 1


@pytest.mark.usefixtures("small")
def test_a_snapshot_in_pieces_says_how_much_is_left() -> None:
    w = torch.rand(3, requires_grad=True)
    h = (w * w).sin().exp().sum()
    identity = Identity()
    found, read = ["at least 3", "at least 5"], ["5", "3", "1", "0"]
    assert said(taking([h], identity=identity)) == said(taking([h], identity=identity)) == [*found, *read]
    previous = take([h], identity=identity)
    assert said(taking([h], identity=identity, previous=previous)) == [*found, *read]
    assert said(taking([h], slots=False)) == [*found, "5", "0"]


def said(reading: Iterable[int]) -> list[str]:
    """The numbers of remaining nodes that work in pieces yields, whenever the number changes."""
    words = (f"at least {left}" if isinstance(left, AtLeast) else str(left) for left in reading)
    return [word for word, _ in groupby(words)]


def test_it_says_that_it_reads_until_it_has_read(notebook: Notebook) -> None:
    heard: list[tuple[Event, str | None]] = []
    notebook.tracker.subscribe(lambda event: heard.append((event, notebook.tracker.busy)))
    notebook.run(CELLS[0])
    assert notebook.recorded() == 0 and notebook.tracker.busy == "reading more than 0 nodes"
    notebook.idle.step()
    assert notebook.recorded() == 0 and not heard and len(notebook.idle.waiting) == 1
    notebook.idle.run()
    assert [(event.cell, event.nodes, busy) for event, busy in heard] == [(1, 19, None)]
    assert notebook.tracker.busy is None


def test_it_says_how_much_it_reads_where_that_is_known(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "PIECE", 20)
    notebook.run(CELLS[0])
    assert notebook.recorded() == 0 and notebook.tracker.busy == "reading 19 nodes"
    notebook.idle.run()


ACCESSES: dict[str, Callable[[Notebook], object]] = {
    "snapshot": lambda n: n.tracker.snapshot(),
    "drawing": lambda n: n.tracker.drawing(),
    "record": lambda n: n.tracker.record(),
    "findings": lambda n: n.tracker.findings(),
    "events": lambda n: n.tracker.events,
    "calls": lambda n: n.tracker.calls,
    "writes": lambda n: n.tracker.writes,
    "lock": lambda n: n.tracker.lock.__enter__() and n.tracker.lock.release(),
    "a cell": lambda n: n.tracker.begin_cell(9, "", filename="<cell 9>"),
    "the end": lambda n: n.tracker.stop(),
    "a call": lambda n: n.namespace["h"].sum().backward(retain_graph=True),
    "another thread": lambda n: in_a_thread(lambda: n.tracker.events),
}


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("slices", [0, 1, 3, 9, 18])
def test_whoever_looks_sooner_finds_all_of_it(notebook: Notebook, access: str, slices: int) -> None:
    notebook.run(CELLS[0])
    for _ in range(slices):
        notebook.idle.step()
    assert notebook.recorded() == 0
    ACCESSES[access](notebook)
    first = notebook.tracker.history.events[0]
    assert (first.kind, first.cell, first.nodes, first.id) == ("cell", 1, 19, 0)
    events = notebook.recorded()
    assert notebook.idle.run() == 1  # the slice that was scheduled finds no work
    assert notebook.recorded() == events
    assert [event.kind for event in notebook.tracker.events] == ["cell", *["call"] * (access == "a call")]


def test_nothing_of_the_users_is_held_when_the_next_cell_runs(notebook: Notebook) -> None:
    notebook.run("w = torch.rand(3, requires_grad=True)\nh = (w * w).sin() * 2")
    tensor = weakref.ref(notebook.namespace["h"])
    notebook.run("del h")
    gc.collect()
    assert tensor() is None


def test_a_cell_inside_a_cell_is_read_at_once(notebook: Notebook) -> None:
    notebook.tracker.begin_cell(1, "outer", filename="<outer>")
    notebook.run(CELLS[0])
    assert notebook.recorded() == 1 and not notebook.idle.waiting
    notebook.tracker.end_cell()
    assert notebook.recorded() == 1 and len(notebook.idle.waiting) == 1


def test_few_nodes_are_read_at_once(notebook: Notebook) -> None:
    notebook.tracker.policy = TrackerPolicy(read_at_once=19)
    notebook.run(CELLS[0])
    assert notebook.recorded() == 1 and not notebook.idle.waiting
    notebook.tracker.policy = TrackerPolicy(read_at_once=18)
    notebook.run("1")
    assert notebook.recorded() == 1 and len(notebook.idle.waiting) == 1


def test_what_changes_meanwhile_is_seen_as_it_is_by_then(notebook: Notebook) -> None:
    """Code outside cells, such as the callback of a slider, may modify what has not been read yet."""
    notebook.run("w = torch.rand(3, requires_grad=True)\nh = (w * w).sin().exp()")
    with torch.no_grad():
        notebook.namespace["w"].mul_(2)
    notebook.idle.run()
    states = {slot.state.word for node in notebook.tracker.events[0].snapshot.nodes for slot in node.saved}
    assert states == {"held", "stale"}


CHANGES = {
    "the data of a leaf": "w.data = torch.rand(3)",
    "the type of a leaf": "w.data = w.data.double()",
    "a longer graph": "h = (h * w).exp()",
    "another graph": "h = w.cos()",
    "a view's base": "with torch.no_grad():\n    w.mul_(2)",
    "nothing left": "del h, w",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("slices", [0, 1, 4, 9, 14, 19, 24])
@pytest.mark.parametrize("known", [False, True])
def test_the_graph_that_is_read_is_that_of_the_cells_end(
    notebook: Notebook, change: str, slices: int, known: bool
) -> None:
    """Whatever code outside cells does meanwhile, and whether the graph was known before or not."""
    notebook.run(CELLS[0])
    expected = ["AccumulateGrad", *["MulBackward0"] * 9, *["SinBackward0"] * 9]
    if known:
        notebook.idle.run()
        notebook.run("k = h.tanh()")
        expected.append("TanhBackward0")
    for _ in range(slices):
        notebook.idle.step()
    tensor = weakref.ref(notebook.namespace["h"])
    exec(CHANGES[change], notebook.namespace)
    assert notebook.recorded() == known
    notebook.idle.run()
    snapshot = notebook.tracker.events[known].snapshot
    assert sorted(node.name for node in snapshot.nodes) == expected
    assert len(set(snapshot.uid)) == len(expected) and len(snapshot.edge_to) == len(expected) + 8
    assert tensor() is None or "h" in notebook.namespace
    notebook.run("1")
    notebook.idle.run()


@pytest.mark.usefixtures("small")
def test_other_snapshots_may_be_taken_meanwhile() -> None:
    """A finaliser of the user's may take a snapshot in the thread that has the lock."""
    w = torch.rand(3, requires_grad=True)
    h = (w * w).sin().exp()
    for count in range(14):
        identity = Identity()
        previous = take([h], identity=identity)
        more = h.cos()
        reading = taking([more], identity=identity, previous=previous)
        for _ in range(count):
            next(reading)
        others = [take([more.tan()], identity=identity) for _ in range(3)]
        snapshot = completed(reading)
        assert len(snapshot) == len(set(snapshot.uid)) == 5 and set(snapshot.uid) < set(others[-1].uid)
        assert len(snapshot.slot_state) == 5
        after = take([more], identity=identity, previous=snapshot)
        assert after.uid == snapshot.uid and after.slot_state == snapshot.slot_state


@pytest.mark.usefixtures("small")
def test_whatever_is_left_open_is_left_as_it_was() -> None:
    """Between the pieces the garbage collector runs, and `__torch_function__` of the user's subclasses."""
    w = torch.rand(3, requires_grad=True)
    h = (w * w).sin().exp().sum()
    pieces = 0
    for _ in taking([h]):
        assert gc.isenabled() and torch._C._is_torch_function_enabled()
        pieces += 1
    assert pieces > 10


@pytest.mark.usefixtures("small")
def test_nothing_is_held_by_what_was_closed() -> None:
    for count in range(1, 20):
        w = torch.rand(3, requires_grad=True)
        h = (w * w).sin().exp()
        tensor, memory = weakref.ref(h), ti.weak_memory(h)
        reading = taking([h], owners=[Held("h", h)])
        for _ in islice(reading, count):
            pass
        del h
        reading.close()
        assert tensor() is None and memory.expired()


# ------------------------------------------------------------ the lock


def counting(done: list[int], upto: int = 3, error: BaseException | None = None) -> Generator[int, None, str]:
    for number in range(upto):
        done.append(number)
        yield number
    if error is not None:
        raise error
    return "all"


def test_work_done_at_once_returns_its_result() -> None:
    done: list[int] = []
    assert at_once(counting)(done, upto=4) == "all"
    assert done == [0, 1, 2, 3]


def test_an_error_of_the_work_is_a_problem_of_nobody_else() -> None:
    problems: list[Exception] = []
    lock, error = WorkLock(problems.append), ValueError("ours")
    with lock:
        lock.leave(counting([], error=error), lambda function: None)
    with lock:
        pass
    assert problems == [error]
    with lock:
        lock.leave(counting([], error=error), lambda function: function())
    assert problems == [error, error]
    assert free(lock)


def test_an_interrupt_leaves_the_lock_free() -> None:
    lock = WorkLock(lambda error: None)
    with lock:
        lock.leave(counting([], error=KeyboardInterrupt()), lambda function: None)
    with pytest.raises(KeyboardInterrupt), lock:
        raise AssertionError("not reached")
    assert free(lock)


def free(lock: WorkLock) -> bool:
    """Whether another thread gets the lock."""
    got: list[bool] = []
    in_a_thread(lambda: got.append(lock.acquire(blocking=False)))
    return got == [True]


def test_work_may_take_the_lock_itself() -> None:
    lock, done = WorkLock(lambda error: None), []

    def work() -> Generator[None, None, None]:
        with lock:
            done.append(1)
        yield
        with lock:
            done.append(2)

    with lock:
        lock.leave(work(), lambda function: None)
    with lock:
        assert done == [1, 2]
