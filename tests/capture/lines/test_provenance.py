"""Which line, loop and module made a node. The line tracer is tested without torch, on every Python installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from array import array
from pathlib import Path

import pytest
import torch
from cells import Notebook

from graphwidget import torch_internals as ti
from graphwidget.capture.lines.ranges import Ranges
from graphwidget.capture.owners import search as owners

ROOT = Path(__file__).resolve().parents[3]

LINES = """
def f(x):
    for k in range(2):
        make()
    return make()
def boom():
    make()
    raise KeyError
for i in range(2):
    make()
    f(1)
while True:
    for j in range(2):
        make()
    i += 1
    if i > 2: break
for a in range(2): make()
for c in range(2):
    for d in (1, 2):
        "a text is no line"
        make(
            2)
    try: boom()
    except KeyError: make()
def batches():
    while True:
        make()
        yield 1
def left(n):
    make()
    return n < 3
for g in zip(
        batches(),
        range(3)):
    make()
n = 0
while left(n) and \\
        left(n):
    n += 1
    make()
"""
# The truth, written by hand: line, outer line, iteration.
EXPECTED = [
    *[p for i in range(2) for p in [(10, 10, i), (4, 11, i), (4, 11, i), (5, 11, i)]],
    *[(14, 14, j) for _ in range(2) for j in range(2)],
    *[(17, 17, a) for a in range(2)],
    *[p for c in range(2) for p in [*[(21, 21, d) for d in (0, 0, 1, 1)], (7, 23, c), (24, 24, c)]],
    # What the head of a loop does between two passes is for the next one.
    *[p for g in range(3) for p in [(27, 32, g), (35, 35, g)]],
    (27, 32, 3),
    *[p for n in range(3) for p in [(30, 37, n), (30, 38, n), (40, 40, n)]],
    (30, 37, 3),
]

SCRIPT = """
import json, sys
sys.path.insert(0, {root!r})
from graphwidget.capture.lines.book import Book
from graphwidget.capture.lines.tracers import line_tracer
made = [0]
def make(count=1):
    made[0] += count
problems = []
book = Book()
tracer = line_tracer(lambda: made[0], book, problems.append)
source = {source!r}
namespace = {{"make": make}}
book.open("<cell 1>", 1, None, source, 0)
tracer.install(); tracer.start()
exec(compile(source, "<cell 1>", "exec"), namespace)
tracer.boundary()
tracer.stop(); tracer.uninstall()
found = []
for number in range(made[0]):
    key = tracer.find(number)
    place = book.place(*key)
    found.append((place.line, place.outer_line, place.iteration))
assert sys.gettrace() is None and "torch" not in sys.modules
print(json.dumps([type(tracer).__name__, found, [repr(p) for p in problems]]))
"""


def interpreters() -> list[str]:
    """The running Python, and every Python from 3.10 to 3.14 that is found next to it or on the path."""
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    homes = [Path(sys.base_prefix).parent]
    for minor in range(10, 15):
        name = f"3.{minor}"
        places = [p / "bin" / f"python{name}" for home in homes for p in sorted(home.glob(f"{name}.*"))]
        here = next((str(p) for p in places if p.exists()), shutil.which(f"python{name}"))
        if here and name not in found and subprocess.run([here, "-c", ""], capture_output=True).returncode == 0:
            found[name] = here
    return list(found.values())


INTERPRETERS = interpreters()


@pytest.mark.parametrize("python", INTERPRETERS)
def test_every_number_is_placed_at_its_line_and_iteration_on_this_python(python: str) -> None:
    script = SCRIPT.format(root=str(ROOT), source=LINES)
    done = subprocess.run([python, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kind, found, problems = json.loads(done.stdout)
    version = subprocess.run([python, "-c", "import sys; print(sys.version_info >= (3, 12))"], capture_output=True)
    assert kind == ("MonitoringTracer" if b"True" in version.stdout else "SettraceTracer")
    assert problems == []
    assert [tuple(p) for p in found] == EXPECTED


def test_the_running_python_is_among_those_tested() -> None:
    assert sys.executable in INTERPRETERS


# ---------------------------------------------------------------- with torch


class Cells(Notebook):
    """A notebook that knows where the tensor of each variable was made."""

    def __init__(self) -> None:
        super().__init__()
        self.provenance = self.tracker.provenance

    def number_of(self, name: str) -> int:
        """Sequence number of the `grad_fn` of a variable."""
        tensor = self.namespace[name]
        assert isinstance(tensor, torch.Tensor) and tensor.grad_fn is not None
        return tensor.grad_fn._sequence_nr()

    def place(self, name: str) -> tuple[object, ...] | None:
        place = self.provenance.place_of(self.number_of(name))
        if place is None:
            return None
        return place.cell, place.line, place.outer_cell, place.outer_line, place.iteration


@pytest.fixture
def cells():
    made = Cells()
    made.run("x = torch.ones(3, requires_grad=True)")
    yield made
    made.close()


def test_a_function_of_another_cell_names_the_inner_and_the_outer_line(cells: Cells) -> None:
    cells.run("def double(t):\n    return t * 2\n")
    cells.run("\nfor i in range(3):\n    y = double(x)\n")
    assert cells.place("y") == (2, 2, 3, 3, 2)


def test_the_same_source_run_twice_is_two_runs(cells: Cells) -> None:
    cells.run("y = x * 2", "<same>")
    first = cells.namespace["y"]
    cells.run("y = x * 2", "<same>")
    assert cells.place("y") == (3, 1, 3, 1, None)
    cells.namespace["y"] = first
    assert cells.place("y") == (2, 1, 2, 1, None)


def test_a_function_defined_by_the_first_run_stays_of_that_run(cells: Cells) -> None:
    cells.run("try:\n    keep = f\nexcept NameError:\n    pass\ndef f(t):\n    return t * 2\n", "<same>")
    cells.run("try:\n    keep = f\nexcept NameError:\n    pass\ndef f(t):\n    return t * 2\n", "<same>")
    cells.run("y, z = keep(x), f(x)")
    assert cells.place("y") == (2, 6, 4, 1, None)
    assert cells.place("z") == (3, 6, 4, 1, None)


def test_what_was_made_outside_cells_has_no_place(cells: Cells) -> None:
    x = cells.namespace["x"]
    assert isinstance(x, torch.Tensor)
    cells.namespace["y"] = x * 2
    assert cells.place("y") is None


def test_numbers_that_two_threads_used_are_unknown(cells: Cells) -> None:
    cells.run("y = x * 2")
    assert cells.place("y") is not None
    work = "import threading\ndef work():\n    for _ in range(%d):\n        torch.ones(1, requires_grad=True) * 2\n"
    cells.run(work % (ti.sequence_nr() + 5) + "t = threading.Thread(target=work)\nt.start()\nt.join()\n")
    assert cells.place("y") is None


def test_a_node_of_a_thread_alone_with_its_numbers_is_placed(cells: Cells) -> None:
    enough = ti.sequence_nr() + 50
    cells.run(
        "import threading\nout = []\ndef work():\n"
        f"    for _ in range({enough}):\n        out.append(torch.ones(1, requires_grad=True) * 2)\n"
        "t = threading.Thread(target=work)\nt.start()\nt.join()\ny = out[-1]\n"
    )
    place = cells.place("y")
    assert place is not None and place[1] == 5


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit", "ValueError"])
def test_tracing_survives_a_cell_that_raises(cells: Cells, error: str) -> None:
    assert type(cells.run(f"def f():\n    raise {error}\nf()")).__name__ == error
    assert sys.gettrace() is None or sys.version_info >= (3, 12)
    cells.run("y = x * 2")
    assert cells.place("y") == (3, 1, 3, 1, None)


def test_places_are_looked_up_again_for_other_numbers_and_when_places_were_forgotten(cells: Cells) -> None:
    cells.run("y = x * 2")
    cells.run("z = x * 3")

    def found(numbers: array[int]) -> list[int | None]:
        column, places, _, _ = cells.provenance.lookup(numbers)
        return [places[at].cell if at >= 0 else None for at in column]

    one, other = (array("q", [cells.number_of(name)]) for name in "yz")
    assert found(one) == found(one) == [2]
    assert found(other) == [3]
    assert found(one) == [2]
    for state in cells.provenance.lines.threads:
        state.ranges._newest = 0
        state.ranges.keep([])
    assert found(one) == [None]


def test_a_module_is_named_by_its_path_from_the_users_name(cells: Cells) -> None:
    cells.run("net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())")
    cells.run("for _ in range(2):\n    y = net(x)")
    cells.provenance.name_modules([cells.namespace])
    call = cells.provenance.module_of(cells.number_of("y"))
    assert call is not None and (call.path, call.class_name, call.call) == ("net[1]", "Tanh", 1)


TREE = """class Tree(torch.nn.Module):
    def __init__(self):
        super().__init__()
        linear = lambda: torch.nn.Linear(3, 3)
        self.h = torch.nn.ModuleList([torch.nn.Sequential(linear(), torch.nn.Tanh()) for _ in range(2)])
        self.heads = torch.nn.ModuleDict({"a": linear(), "for": linear()})
        self.named = torch.nn.Sequential()
        self.named.add_module("first", linear())
        self.add_module("0odd", linear())
    def forward(self, x):
        for block in self.h:
            x = block(x)
        for head in self.heads.values():
            x = head(x)
        return self._modules["0odd"](self.named(x))
"""


@pytest.mark.parametrize("name", ["tree", "tree.module", "Tree"])
def test_a_module_is_written_as_users_write_it_and_as_its_parameters_are_called(cells: Cells, name: str) -> None:
    wrapped = "class Wrap(torch.nn.Module):\n    def __init__(self, m):\n        super().__init__()\n        self.module = m\n"
    cells.run(TREE + wrapped + "    def forward(self, x):\n        return self.module(x)\n")
    make = {"tree": "tree = Tree()\nout = tree(x)", "tree.module": "tree = Wrap(Tree())\nout = tree(x)"}
    cells.run(make.get(name, "made = [Tree()]\nout = made[0](x)"))
    cells.provenance.name_modules([cells.namespace])
    last = cells.number_of("out")
    paths = {call.path for seq in range(last - 40, last + 1) if (call := cells.provenance.module_of(seq)) is not None}
    inner = ["h[0][0]", "h[0][1]", "h[1][0]", "h[1][1]", "heads['a']", "heads['for']", "named.first"]
    assert {f"{name}.{path}" for path in inner} | {f"{name}._modules['0odd']"} <= paths
    if name in make:
        holdings = owners.find(dict(cells.namespace)).holdings
        of_parameters = {h.path.removesuffix(".weight") for h in holdings if h.path.endswith(".weight")}
        assert {path for path in paths if not path.endswith("[1]")} <= of_parameters | {name}
        for path in paths:
            assert isinstance(eval(path, cells.namespace), torch.nn.Module)


def test_what_a_loop_leaves_behind_does_not_name_a_module(cells: Cells) -> None:
    cells.run("body = torch.nn.Linear(3, 3)\nlayers = torch.nn.ModuleList([body, torch.nn.Tanh()])")
    cells.run("y = x\nfor f in layers:\n    y = f(y)")
    cells.provenance.name_modules([cells.namespace])
    calls = [cells.provenance.module_of(cells.number_of("y") - back) for back in (0, 1)]
    assert [call and call.path for call in calls] == ["layers[1]", "body"]


def test_a_module_without_a_name_goes_by_its_class(cells: Cells) -> None:
    cells.run("y = torch.nn.Linear(3, 3)(x)")
    call = cells.provenance.module_of(cells.number_of("y"))
    assert call is not None and call.path == "Linear"


def test_lines_of_a_users_module_inside_torchs_own_are_seen(cells: Cells) -> None:
    cells.run("class Twice(torch.nn.Module):\n    def forward(self, t):\n        return t * 2\n")
    cells.run("net = torch.nn.Sequential(torch.nn.Tanh(), Twice(), torch.nn.Tanh())\ny = net(x)\nz = y * 2")
    y = cells.namespace["y"]
    assert isinstance(y, torch.Tensor)
    cells.namespace["inner"] = inner = torch.autograd.graph.get_gradient_edge(y).node.next_functions[0][0]
    place = cells.provenance.place_of(inner._sequence_nr())
    assert place is not None and (place.cell, place.line, place.outer_cell, place.outer_line) == (2, 3, 3, 2)
    assert cells.place("y") == (3, 2, 3, 2, None)
    assert cells.place("z") == (3, 3, 3, 3, None)


def test_a_tracer_that_is_there_already_goes_on_working(cells: Cells) -> None:
    lines: list[int] = []

    def theirs(frame, event, arg):
        if frame.f_code.co_filename == "<cell 2>":
            lines.append(frame.f_lineno)
        return theirs

    before = sys.gettrace()
    sys.settrace(theirs)
    try:
        cells.run("y = x * 2\nz = y * 3")
        assert sys.gettrace() is theirs
    finally:
        sys.settrace(before)
    assert {1, 2} <= set(lines)
    assert cells.place("z") == (2, 2, 2, 2, None)


def test_stopping_restores_tracers_and_hooks() -> None:
    from torch.nn.modules import module

    def state() -> tuple[object, ...]:
        return sys.gettrace(), threading.gettrace(), len(module._global_forward_hooks), module._has_any_global_hook

    before = state()
    cells = Cells()
    cells.run("x = 1")
    cells.tracker.begin_cell(9, "y = 1", filename="<cell 9>")
    cells.close()
    assert state() == before


def test_a_million_stretches_stay_within_the_limit() -> None:
    ranges = Ranges(limit=1000)
    for i in range(20_000):
        ranges.add(2 * i, 2 * i + 2, i % 7, 0, i)
        if ranges.full:
            ranges.keep([3, 5])
    assert len(ranges) <= 1010
    assert ranges.find(3) == (1, 0, 1)
    assert ranges.find(101) is None
    assert ranges.find(39_999) == (19_999 % 7, 0, 19_999)


def test_room_is_made_seldom_where_nearly_everything_lives() -> None:
    ranges = Ranges(limit=1000)
    made_room = 0
    for i in range(20_000):
        ranges.add(2 * i, 2 * i + 2, i, 0, -1)
        if ranges.full:
            made_room += 1
            ranges.keep(range(2 * i + 2))
    assert len(ranges) == 20_000
    assert made_room <= 6


def test_never_more_than_the_most() -> None:
    ranges = Ranges(limit=1000, most=4000)
    for i in range(50_000):
        ranges.add(2 * i, 2 * i + 2, i, 0, -1)
    ranges.settle()
    assert len(ranges) == 4000
    assert ranges.find(2 * 45_999) is None
    assert ranges.find(2 * 46_000) == (46_000, 0, -1)


def test_neighbours_of_one_line_are_one_stretch() -> None:
    ranges = Ranges()
    for i in range(1000):
        ranges.add(i, i + 1, 1, 2, -1)
    ranges.settle()
    assert len(ranges) == 1


def test_one_gap_answers_for_all_numbers_after_the_last_stretch() -> None:
    ranges = Ranges()
    ranges.add(3, 5, 1, 2, -1)
    ranges.add(8, 9, 1, 3, -1)
    for seq in range(20):
        first, end = next(
            (first, end) for first, end in ((0, 3), (3, 5), (5, 8), (8, 9), (9, sys.maxsize)) if seq < end
        )
        assert (ranges.find(seq), ranges.around(seq)) == (ranges.find(first), (first, end))
