"""Records written by hand and at random, for the tests of findings and fixes."""

from __future__ import annotations

from array import array
from dataclasses import replace

import build
from hypothesis import strategies as st
from random_graphs import graphs

from graphwidget.model import BackwardCall, CellRun, Kind, Leaf, NodeFacts, Owner, Place, Record, TensorRef, Write

FREED = "Trying to backward through the graph a second time (...)"
INPLACE = "one of the variables needed for gradient computation has been modified by an inplace operation: ..."
NO_GRAD = "element 0 of tensors does not require grad and does not have a grad_fn"

SOURCES = (
    "",
    "y = t @ a\nfor i in range(2):\n    loss = (y * w).sum()\n    loss.backward()\n",
    "def step(x):\n    h = f(x)\n    h += x\n    return h.backward()\nstep(1)\n",
    "class M:\n    def __init__(self):\n        self.t = p.exp()\n    def forward(self, x):\n        return x + self.t\n",
    "if y is None:\n    y = f(x)\n[l.backward() for l in losses]\ntemp.append(y); total += y\n",
    "%matplotlib inline\nwith torch.no_grad():\n    w.data.clamp_(0)\n",
    "def broken(:\n",
    "y = x.detach()\n\n\nloss = y.sum()\n",
)


def place(cell=1, line=1, run=None, iteration=None, source="", outer=None):
    """A place in a cell; `outer`: (cell, line) of the outermost frame where that is another one."""
    out = outer or (cell, line)
    return Place(cell, line, source, *out, source, iteration, f"c{cell}", cell - 1 if run is None and cell else run)


def placed(shot, places):
    """A snapshot whose node i was made at places[i]."""
    return replace(shot, places=tuple(places), place=array("i", range(len(places))))


_places = st.builds(
    Place,
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([None, 0, 1, 2, 4, 99]),
    st.sampled_from(["", "loss.backward()", "h += x", "y = t @ a", "x ("]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, 1, 3, 99]),
    st.just(""),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, "c1", "c2"]),
    st.sampled_from([None, 0, 1, 7]),
)


@st.composite
def odd_graphs(draw):
    """A snapshot with leaves, places, facts, freed slots and owners of every kind."""
    shot = draw(graphs())
    n, slots = len(shot), len(shot.slot_state)
    made = draw(st.lists(_places, min_size=1, max_size=4))
    kinds = [draw(st.sampled_from([0, 0, 0, 1, 2, 3])) for _ in range(n)]
    described = Leaf(draw(st.sampled_from([(), ("w",)])), (2,), "float32", False)
    leaves = {i: described for i, kind in enumerate(kinds) if kind == Kind.ACCUMULATE and draw(st.booleans())}
    owner_kinds = st.sampled_from(["variable", "out", "traceback", "frame", "element"])
    return replace(
        shot,
        kind=bytearray(kinds),
        seq=array("q", [-1 if kind == 1 else n - i for i, kind in enumerate(kinds)]),
        places=tuple(made),
        place=array("i", [draw(st.integers(-1, len(made) - 1)) for _ in range(n)]),
        module=array("i", [-1] * n),
        slot_freed_by=array("i", [draw(st.integers(-1, 3)) for _ in range(slots)]),
        slot_dtype=array("i", [-1] * slots),
        slot_shape=array("i", [-1] * slots),
        edge_nr=shot.edge_nr,
        leaves=leaves,
        facts={0: NodeFacts(inner_stale=None)} if draw(st.booleans()) else {},
        owners=tuple(replace(owner, kind=draw(owner_kinds)) for owner in shot.owners) + (Owner("_", 0, 0, "out"),),
        roots=tuple(TensorRef(root.node, 0, draw(st.sampled_from([(), ("y",), ("_",)]))) for root in shot.roots),
    )


@st.composite
def records(draw):
    """A record in which anything may be missing or contradict the rest."""
    now = draw(odd_graphs())
    calls = []
    for n in range(draw(st.integers(0, 5))):
        graph = draw(st.one_of(st.none(), odd_graphs()))
        size = len(graph) if graph is not None else 1
        error = draw(st.sampled_from([None, FREED, INPLACE, NO_GRAD, "boom"]))
        roots = tuple(
            TensorRef(draw(st.integers(-1, size - 1)), 0, draw(st.sampled_from([(), ("loss",), ("f:x",)])))
            for _ in range(draw(st.integers(0, 2)))
        )
        calls.append(
            BackwardCall(
                draw(st.sampled_from([n, n, n + 1])),
                draw(_places),
                draw(st.sampled_from(["backward", "autograd.grad"])),
                draw(st.booleans()),
                draw(st.booleans()),
                roots,
                (),
                inputs=draw(st.sampled_from([None, (), roots])),
                result="raised" if error else draw(st.sampled_from(["ok", "running"])),
                error=error,
                failed_node=draw(st.sampled_from([None, "MulBackward0"])),
                failed_uid=draw(st.sampled_from([None, 100, 101, 5])),
                freed_by=draw(st.sampled_from([None, 0, 1, 9])),
                executed=array("q", draw(st.lists(st.integers(98, 106), max_size=6))),
                carriers=draw(st.sampled_from([(), ("y",), ("temp[0]", "temp[1]"), ("f:x",), ("g.gi_frame[h]",)])),
                reached=draw(st.sampled_from([(), ("w",)])),
                reached_uids=tuple(draw(st.lists(st.integers(98, 106), max_size=3))),
                newest_seq=draw(st.integers(-1, 12)),
                graph=graph,
            )
        )
    writes = tuple(
        Write(
            draw(_places),
            draw(st.sampled_from(["h += x", "opt.step()", "state[t] = v", "x.relu_()", "out = drop(h)", "", "?("])),
            draw(st.sampled_from([(), ("y",), ("w",)])),
            tuple(draw(st.lists(st.integers(0, 3), max_size=2))),
            draw(st.integers(0, 4)),
            draw(st.booleans()),
            tuple(draw(st.lists(st.integers(0, 12), max_size=2))),
            draw(st.integers(-1, 12)),
        )
        for _ in range(draw(st.integers(0, 3)))
    )
    runs = {
        run: CellRun(run, draw(st.sampled_from([None, 1, 2, 3])), draw(st.sampled_from(SOURCES)), f"c{run + 1}")
        for run in draw(st.lists(st.integers(0, 3), unique=True))
    }
    outlived = dict.fromkeys(draw(st.lists(st.integers(100, 103), max_size=2)), "y")
    return Record(now, tuple(calls), writes, runs, outlived, draw(st.sampled_from([(), writes])))


LOOP = "for i in range(2):\n    loss = (y * w).sum()\n    loss.backward()\n"


def second_backward():
    """`y = t @ a` in cell 1, a loop over it in cell 2: iteration 0 freed Mv, iteration 1 meets it."""
    shot = build.graph(
        build.N("Sum", "Mul", seq=12),
        build.N("Mul", "Mv w", (build.HELD, build.HELD), seq=11),
        build.N("Mv", "t a", (build.FREED, build.FREED), seq=1),
        build.leaf("w"),
        build.leaf("t"),
        build.leaf("a"),
    )
    shot = replace(shot, slot_freed_by=array("i", [-1, -1, 0, 0]), owners=(Owner("y", 2), Owner("loss", 0)))
    inside = place(2, 2, iteration=1)
    shot = placed(shot, [inside, inside, place(1, 1), inside, inside, inside])
    root = TensorRef(0, 0, ("loss",))
    line = "loss.backward()"
    one = BackwardCall(
        0, place(2, 3, iteration=0, source=line), "backward", False, False, (root,), ("Sum",), result="ok", newest_seq=8
    )
    one = replace(one, executed=array("q", [90, 91, 2, 3, 4, 5]))
    two = replace(
        one,
        n=1,
        place=place(2, 3, iteration=1, source=line),
        result="raised",
        error=FREED,
        failed_node="MvBackward0",
        failed_uid=2,
        freed_by=0,
        carriers=("y",),
        newest_seq=13,
        graph=shot,
    )
    runs = {0: CellRun(0, 1, "y = t @ a\n", "c1"), 1: CellRun(1, 2, LOOP, "c2")}
    return Record(shot, (one, two), (), runs)
