"""Deep graphs walked in Python: torch frees each node from inside the freeing of the last, and the stack overflows.

Each program here is killed by the operating system if that happens.
"""

from __future__ import annotations

import subprocess
import sys

import pytest


def assert_drops(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "dropped\n"), done.stderr
    assert "Error" not in done.stderr and "Traceback" not in done.stderr, done.stderr


GROWS = """
import torch
from graphwidget.capture.graph.identity import Identity
from graphwidget.capture.graph.snapshot import take
identity, last = Identity(), None
h = torch.ones(1, requires_grad=True)
for _ in range(100):  # no part is deep enough for a break
    for _ in range(900):
        h = h + 1
    last = take([h], identity=identity, previous=last)
assert len(last) == 90_001, len(last)
del h
print("dropped")
"""


def test_a_deep_graph_that_grew_from_snapshot_to_snapshot_is_safe_to_drop():
    assert_drops(GROWS)


# A walk in pieces may be ended early. In a thread with a small stack a few thousand nodes are enough to overflow it.
READS = """
import sys, threading
import torch
from graphwidget.capture.graph import deep, identity, walk
from graphwidget.capture.graph.snapshot import taking

def begin(pieces):
    "Read some pieces of a deep graph."
    h = torch.ones(1, requires_grad=True)
    for _ in range(60_000):
        h = h + 1
    held.append(h)
    readings.append(taking([h]))
    for _ in range(pieces):
        next(readings[-1])

def interrupt(module, name):
    "The next call of a function is interrupted."
    whole = getattr(module, name)
    def interrupted(*args):
        setattr(module, name, whole)
        raise KeyboardInterrupt
    setattr(module, name, interrupted)

def drop():
    readings.clear()
    held.clear()

def drop_in_a_thread():
    thread = threading.Thread(target=drop)
    thread.start()
    thread.join()

threading.stack_size(512 * 1024)
readings, held = [], []
"""
GIVEN_UP = """
for pieces in (1, 4, 14, 16, 20, 24, 28, 35):
    begin(pieces)
    print(pieces, file=sys.stderr)
    drop_in_a_thread()
    begin(pieces)
    held.clear()
    print(pieces, "without the tensor", file=sys.stderr)
    drop_in_a_thread()
"""
INTERRUPTED = """
for module, name in (
    (walk, "islice"),
    (walk.ti, "sequence_numbers"),
    (identity, "or_"),
    (walk.ti, "node_readers"),
    (deep, "_rise"),
    (deep.ti, "memory_of_node"),
):
    begin(3)
    interrupt(module, name)
    try:
        for _ in readings[0]:
            pass
        raise AssertionError("it was not interrupted")
    except KeyboardInterrupt:
        print(name, file=sys.stderr)
    drop_in_a_thread()
begin(3)
try:
    readings[0].throw(KeyboardInterrupt)
except KeyboardInterrupt:
    drop_in_a_thread()
"""


@pytest.mark.parametrize("ends", [GIVEN_UP, INTERRUPTED], ids=["given up", "interrupted"])
def test_a_deep_graph_is_safe_to_drop_wherever_its_reading_ends(ends: str):
    assert_drops(READS + ends + "print('dropped')")


@pytest.mark.parametrize("pieces", [4, 16, 24])
def test_a_process_may_end_while_a_deep_graph_is_read(pieces: int):
    assert_drops(READS + f"begin({pieces})\nprint('dropped')")


KERNEL_ENDS = """
import torch
from graphwidget.capture.tracker import Tracker
tracker = Tracker(idle=lambda: lambda seconds, function: None)
tracker.start()
source = "h = torch.ones(1, requires_grad=True)\\nfor _ in range(60_000):\\n    h = h + 1"
tracker.begin_cell(1, source, filename="<cell 1>")
exec(compile(source, "<cell 1>", "exec"))
tracker.end_cell()
assert tracker.busy == "reading more than 10,000 nodes", tracker.busy
print("dropped")
"""


def test_a_kernel_may_end_while_it_has_work_left():
    assert_drops(KERNEL_ENDS)
