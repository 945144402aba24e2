"""Graphs that only the notebook itself keeps: what cells displayed, and the frames of the last error.

This is how notebooks work and usually no mistake. It is reported as information, and only if the kernel goes on and
nothing else keeps a considerable amount of memory.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from graphwidget.engine.what_if import bytes_held, reachable
from graphwidget.model import CellRun, Finding, Fix, Owner, Record, bytes_text, is_notebooks, torch_messages

MUCH = 2**20  # bytes of saved tensors from which on they are reported
MOST = 40  # nodes examined one by one, the newest: each costs a walk over the graph


def find(record: Record, much: int = MUCH) -> Iterator[Finding]:
    """Findings for what the notebook keeps, from `much` bytes on. Outside of a notebook there are none."""
    if record.notebook and record.snapshot.held_bytes() >= much:
        yield from _displayed(record, much)
        yield from _of_the_last_error(record, much)


def _only_kept_by(record: Record, nodes: Collection[int]) -> int:
    """Bytes that would be freed if nothing kept these nodes: of the nodes below them that no other owner reaches."""
    graph = record.snapshot
    others = reachable(graph, {owner.node for owner in graph.owners} - set(nodes))
    return bytes_held(graph, reachable(graph, nodes) - others)


def _displayed(record: Record, much: int) -> Iterator[Finding]:
    """Nodes that a variable once owned and that only IPython's outputs keep now."""
    graph = record.snapshot
    by_node: dict[int, list[Owner]] = defaultdict(list)
    for owner in graph.owners:
        by_node[owner.node].append(owner)
    outlived = [index for index in by_node if graph.uid[index] in record.outlived]
    for index in outlived[-MOST:]:
        owners = by_node[index]
        shown = [found[1] for owner in owners if (found := re.match(r"Out\[(\d+)\]", owner.path))]
        if not shown or any(owner.kind != "out" for owner in owners):
            continue  # the next cells release `_`, `__` and `___` anyway
        kept = _only_kept_by(record, [index])
        if kept < much:
            continue
        name, cell = record.outlived[graph.uid[index]], shown[0]
        yield Finding(
            "leak",
            "info",
            f"`{name}` is gone, but IPython keeps what In[{cell}] displayed. Its graph stays, with "
            f"{bytes_text(kept)} of saved tensors.",
            f"What In[{cell}] displayed keeps the graph of `{name}`.",
            node=graph.name_of(index),
            node_uid=graph.uid[index],
            made_at=graph.place_of(index),
            bytes=kept,
            uids=(graph.uid[index],),
            fixes=(
                Fix("no_display", f"End the line of In[{cell}] with `;`, or display `{name}.detach()`.", True),
                Fix(
                    "del_variable",
                    f"Let IPython forget what In[{cell}] displayed: `%xdel _{cell}`.",
                    False,
                    None,
                    "It can no longer be used.",
                    # Not `%reset -f out`: after that, IPython keeps the last value displayed for good.
                    (f"+ %xdel _{cell}",),
                ),
            ),
        )


def _of_the_last_error(record: Record, much: int) -> Iterator[Finding]:
    """What only the frames of the last error keep, if that error is about graphs or memory."""
    graph = record.snapshot
    only = {owner.node for owner in graph.owners if owner.kind == "traceback"}
    only -= {owner.node for owner in graph.owners if owner.kind == "out" or not is_notebooks(owner.kind, owner.path)}
    kept = _only_kept_by(record, only) if only and _has_to_do_with_it(record) else 0
    if kept < much:
        return
    first = min(only)
    yield Finding(
        "leak",
        "info",
        "Python keeps the last error with the local variables of the functions that it came through. They keep "
        f"{bytes_text(kept)} of saved tensors that nothing else keeps.",
        f"The last error keeps {bytes_text(kept)} of saved tensors.",
        node=graph.name_of(first),
        node_uid=graph.uid[first],
        made_at=graph.place_of(first),
        bytes=kept,
        uids=tuple(graph.uid[i] for i in sorted(only)),
        fixes=(
            Fix(
                "clear_last_traceback",
                "Release it: clear what Python and IPython keep of it, and collect, because its frames refer to each "
                "other. The next error and the next collection do the same.",
                True,
                None,
                "The debugger cannot go back to it.",
                (
                    "+ import gc, sys",
                    "+ sys.last_traceback = sys.last_value = sys.last_exc = None",
                    "+ get_ipython().InteractiveTB.tb = None",
                    "+ gc.collect()",
                ),
            ),
        ),
    )


def _has_to_do_with_it(record: Record) -> bool:
    failed = [run for run in record.runs.values() if run.error_type]
    last = max(failed, key=lambda run: run.run, default=None)
    return last is not None and (_about_memory(last) or _of_a_call(record, last))


def _about_memory(run: CellRun) -> bool:
    return "MemoryError" in (run.error_type or "") or torch_messages.says(run.error, torch_messages.OUT_OF_MEMORY)


def _of_a_call(record: Record, run: CellRun) -> bool:
    raised = (call for call in record.calls if call.result == "raised")
    return any(call.error == run.error and call.error_type == run.error_type for call in raised)
