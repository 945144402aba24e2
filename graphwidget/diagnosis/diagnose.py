"""Findings: what went wrong, what would, and what piles up. Words are short and torch's own.

`diagnose` reads a `Record` and says nothing where nothing is wrong. Severity: `error`, a call failed;
`warning`, one would fail as things stand or a graph piles up; `info`, worth knowing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graphwidget.diagnosis.findings import idle_step as idle
from graphwidget.diagnosis.findings import leak, none_grads, refused, silent
from graphwidget.diagnosis.findings import no_grad as nograd
from graphwidget.diagnosis.fixes.candidates import for_second_backward, kept_bytes, simulate
from graphwidget.diagnosis.fixes.harm import destroys
from graphwidget.diagnosis.fixes.inplace import for_inplace
from graphwidget.diagnosis.numbering import with_numbers, without_numbers
from graphwidget.diagnosis.reuse.blame import culprit
from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.reuse.inplace_modules import named, with_modules
from graphwidget.diagnosis.reuse.story import (
    Meeting,
    Tensor,
    call_at,
    failed_meeting,
    own_path,
    passing,
    root_name,
    way,
)
from graphwidget.diagnosis.source.fitting import checked, made_once_run_often, with_edits
from graphwidget.diagnosis.wording import number, opening, short, where
from graphwidget.engine.what_if import anything_stale
from graphwidget.model import BackwardCall, Finding, Fix, Place, Record, Scene, Snapshot, Write

MOST_ROOTS = 20  # looked at for staleness: each costs a forecast
MOST_FIXES = 3
_SIMULATED = ("second_backward", "inplace")
_ORDER = {"error": 0, "warning": 1, "info": 2}
_REASONS = (
    ("second time", "freed"),
    ("already been freed", "freed"),
    ("modified by an inplace operation", "inplace"),
    ("One of the differentiated Tensors does not require grad", "input"),
    ("can't retain_grad on Tensor that has requires_grad=False", "input"),
    ("does not require grad", "no_grad"),
    ("appears to not have been used in the graph", "unused"),
)


def diagnose(record: Record) -> tuple[Finding, ...]:
    """Everything worth telling about a record: errors first, the newest first among them.

    Parameters
    ----------
    record
        The graph now, the calls so far, the writes and the runs of cells.

    Returns
    -------
    Findings, each at most once. Empty when nothing is wrong.
    """
    record = with_numbers(record)
    found: list[Finding] = []
    for call in reversed(record.calls):
        found.extend(_of_call(record, call))
    found.extend(refused.of_cells(record))
    found.extend(leak.find(record))
    found.extend(silent.find(record))
    found.extend(idle.find(record))
    found.extend(none_grads.of_reads(record))
    found.extend(stale_now(record))
    unique: dict[tuple[object, ...], Finding] = {}
    for finding in found:
        key = (finding.kind, finding.severity, *_spot(record, finding), finding.carriers, finding.tensor)
        unique.setdefault(key, finding)
    told = [_told(record, finding) for finding in unique.values()]
    return tuple(sorted(told, key=lambda f: _ORDER[f.severity]))


def of_call(record: Record, call: BackwardCall) -> tuple[Finding, ...]:
    """The findings of one call, as `diagnose` tells them: what is put under its traceback."""
    record = with_numbers(record)
    same = call_at(record.calls, call.n) or call
    return tuple(_told(record, finding) for finding in _of_call(record, same))


def _told(record: Record, finding: Finding) -> Finding:
    return without_numbers(replace(finding, fixes=_offered(record, finding)))


def _spot(record: Record, finding: Finding) -> tuple[object, ...]:
    """What tells findings of one kind apart: the line that failed, and the line that made what it failed on."""
    call = call_at(record.calls, finding.call)
    if call is None or not where(call.place):
        return (finding.call, finding.node_uid, where(finding.made_at))
    return (where(call.place), call.place.run, where(finding.made_at), finding.node)


def _offered(record: Record, finding: Finding) -> tuple[Fix, ...]:
    """The fixes worth offering, none that would destroy anything; at most three.

    Of those that were simulated the ones that work, if one does that takes no gradient from anything.
    """
    call = call_at(record.calls, finding.call)
    graph = call.graph if call is not None else None
    shown = [with_edits(record, fix) for fix in finding.fixes]
    fixes = [checked(record, fix) for fix in shown if not destroys(record, fix, graph)]
    if finding.kind in ("no_grad", "silent"):
        fixes = [replace(f, verified=f.verified and not made_once_run_often(record, f)) for f in fixes]
    if finding.kind in _SIMULATED and any(fix.verified and not fix.starves for fix in fixes):
        fixes = [fix for fix in fixes if fix.verified]
    return tuple(fixes[:MOST_FIXES])


def _of_call(record: Record, call: BackwardCall) -> Iterator[Finding]:
    """The finding behind a call that raised, if it is of a kind that we can explain."""
    if call.result != "raised":
        return
    reason, within = reason_of(call), record.scenes.get(call.n, Scene()).raised_in
    if within == "call" or (within == "python" and reason in ("no_grad", "input", "unused")):
        return  # of another call's graph, or words of the user's own
    if reason == "freed":
        yield second_backward(record, call)
    elif reason == "inplace":
        yield inplace(record, call)
    elif reason == "no_grad":
        yield nograd.explain(record, call)
    elif reason == "input":
        yield nograd.of_input(call)
    elif reason == "unused":
        yield none_grads.of_unused(record, call)


def reason_of(call: BackwardCall) -> str | None:
    """Why a call raised, from torch's own message."""
    return next((reason for words, reason in _REASONS if words in (call.error or "")), None)


# ------------------------------------------------------------------ second backward


def second_backward(record: Record, call: BackwardCall) -> Finding:
    """A call that reached freed saved tensors: who freed them, what carried the old part over."""
    node = call.failed_node or ""
    meeting = failed_meeting(record, call)
    if meeting is None:
        return Finding(
            "second_backward",
            "error",
            f"{node or 'A node'} needs saved tensors that have been freed. By which call is unknown: it ran before "
            "tracking began, or is no longer remembered.",
            f"{opening(call.n)} needs saved tensors that an earlier call freed.",
            call.n,
            node,
            call.failed_uid,
            call.failed_place,
            call.carriers,
            call.freed_by,
        )
    return Finding(
        "second_backward",
        "error",
        " ".join(_story(meeting)),
        f"{opening(call.n)} needs saved tensors that {number(meeting.earlier.n)} freed.",
        call.n,
        node,
        call.failed_uid,
        _made_at(meeting.graph, call),
        call.carriers,
        meeting.earlier.n,
        bytes=kept_bytes(meeting),
        path=_path(meeting.graph, call, meeting),
        uids=_uids(meeting.graph, call),
        fixes=for_second_backward(meeting),
    )


def _story(meeting: Meeting) -> Iterator[str]:
    """Two or three sentences: where the carrier was made, what freed its node, how it was reached again."""
    earlier, later, carrier = meeting.earlier, meeting.later, Carrier(meeting)
    node = later.failed_node or "the node"
    made = carrier.built_at
    if meeting.same_root:
        yield f"{opening(earlier.n)} ({_when(meeting.record, earlier.place)}) ran backward on `{root_name(earlier)}`."
        yield f"It freed what {node} had saved."
        yield f"{opening(later.n)} {'runs the same graph again' if meeting.runs_again else 'starts inside that graph'}."
        return
    if where(made):
        iteration = _in_iteration(meeting.record, made)
        once = "once, " if meeting.in_loop and not meeting.made_on_the_way and not iteration else ""
        yield f"`{carrier.name}` was built {once}in {where(made)}{iteration}."
    yield f"{opening(earlier.n)} ({_when(meeting.record, earlier.place)}) freed what {node} had saved."
    onward = meeting.in_loop and (later.place.iteration or 0) > (earlier.place.iteration or 0)
    again = passing(meeting.record, later.place).capitalize() if onward else opening(later.n)
    yield f"{again} reaches the same node {'again' if carrier.name == node else f'through `{carrier.name}`'}."


def _when(record: Record, place: Place) -> str:
    return f"{where(place) or place.outside}{_in_iteration(record, place)}"


def _in_iteration(record: Record, place: Place | None) -> str:
    return f", {passing(record, place)}" if place is not None and place.iteration is not None else ""


def _made_at(graph: Snapshot, call: BackwardCall) -> Place | None:
    index = graph.index_of.get(call.failed_uid) if call.failed_uid is not None else None
    return graph.place_of(index) if index is not None else call.failed_place


def _path(graph: Snapshot, call: BackwardCall, meeting: Meeting | None = None) -> tuple[str, ...]:
    """Variables from the root to the failing node, and the node's name.

    The way comes to what was made before the freeing call through the carrier, even if that variable has been given a
    new value since.
    """
    shown: list[str] = []
    newest = freed_after = meeting.earlier.newest_seq if meeting is not None else 0
    carrying = [path] if meeting is not None and (path := Carrier(meeting).path) in call.carriers else []
    names: dict[Tensor, list[str]] = {}
    for owner in graph.owners:
        names.setdefault((owner.node, owner.output_nr), []).append(owner.path)
    for tensor in way(graph, call):
        labels = names.get(tensor, ())
        seq = graph.seq[tensor[0]]
        carried = carrying if newest >= freed_after > seq else ()
        newest = seq
        best = [carrier for carrier in (*carrying, *call.carriers) if carrier in labels]
        label = next(iter((*best, *labels, *carried)), None)
        if label and label not in shown:
            shown.append(label)
    return (*shown, call.failed_node or "")


def _uids(graph: Snapshot, call: BackwardCall) -> tuple[int, ...]:
    return tuple(graph.uid[index] for index, _ in way(graph, call))


# ------------------------------------------------------------------ in-place


def inplace(record: Record, call: BackwardCall) -> Finding:
    """A call that met a saved tensor modified in place: which tensor, by which line."""
    graph = call.graph
    record = with_modules(record, graph) if graph is not None else record
    node = call.failed_node or ""
    saved = f"{node} had saved it" if node else "it was saved"
    index = graph.index_of.get(call.failed_uid) if graph is not None and call.failed_uid is not None else None
    tensor, writes = culprit(record, graph, index, call.n) if graph is not None and index is not None else (None, ())
    shown = f"`{tensor}`" if tensor else "a tensor"
    if writes:
        write = writes[-1]
        inside = f" in {named(write.inside)}," if write.inside is not None else ""
        story = f"{short(write.by)} ({_when(record, write.place)}) modified {shown}{inside} after {saved}."
        if where(writes[0].place) != where(writes[-1].place):
            story += f" So did {short(writes[0].by)} ({where(writes[0].place)}) before."
    else:
        first = shown[0].upper() + shown[1:]
        story = f"{first} was modified in place after {saved}. By which line is unknown."
    text = f"{story} Its old values, which the gradient needs, are gone."
    meeting = _retained_meeting(record, call)
    return Finding(
        "inplace",
        "error",
        text,
        f"{opening(call.n)} needs {shown} as it was; it has been modified in place.",
        call.n,
        node,
        call.failed_uid,
        _made_at(graph, call) if graph is not None else call.failed_place,
        call.carriers,
        tensor=tensor,
        modified_at=writes[-1].place if writes else None,
        path=_path(graph, call) if graph is not None else (),
        uids=_uids(graph, call) if graph is not None else (),
        fixes=for_inplace(record, call, graph, writes, meeting, tensor) if graph is not None else (),
    )


def _retained_meeting(record: Record, call: BackwardCall) -> Meeting | None:
    """The latest earlier call that ran the failing node, kept alive by retain_graph."""
    if call.graph is None or call.failed_uid is None:
        return None
    ran = [c for c in record.calls if c.n < call.n and call.failed_uid in c.executed]
    return Meeting(record, call, ran[-1], call.graph) if ran else None


def stale_now(record: Record) -> Iterator[Finding]:
    """Roots whose backward would fail as things stand, because a line modified a saved tensor in place.

    After a step, losses of earlier batches are stale and nobody means to run them again: the forecast of their button
    says it, and no finding.
    """
    graph = record.snapshot
    if not anything_stale(graph):
        return
    record = with_modules(record, graph)
    if all(map(_is_of_a_step, record.writes)):
        return
    ran = {uid for call in record.calls for uid in call.executed}
    for root in graph.roots[:MOST_ROOTS]:
        path = own_path(root)
        if root.node < 0 or graph.uid[root.node] in ran or path is None or root.numel != 1 or root.known_as:
            continue  # nobody means to run what only an error keeps
        call = BackwardCall(len(record.calls), Place(None, None), "backward", False, False, (root,), ())
        forecast = simulate(graph, call)
        if forecast.ok is not False or forecast.reason != "inplace" or forecast.fails_at is None:
            continue
        index = forecast.fails_at.index
        tensor, writes = culprit(record, graph, index, call.n)
        if writes and not any(map(_is_of_a_step, writes)):
            yield _would_be_stale(record, graph, path, index, tensor, writes, call)


def _is_of_a_step(write: Write) -> bool:
    """Whether a write is an optimizer's step, or one by hand: ``p -= 0.1 * p.grad``."""
    return write.optimizer or ".grad" in write.by


def _would_be_stale(
    record: Record,
    graph: Snapshot,
    root: str,
    index: int,
    tensor: str | None,
    writes: tuple[Write, ...],
    call: BackwardCall,
) -> Finding:
    shown = f"`{tensor}`" if tensor else "a saved tensor"
    write = writes[-1]
    by = f"{short(write.by)} ({_when(record, write.place)}) changed {shown}"
    by += f" in {named(write.inside)}," if write.inside is not None else ""
    name = graph.name_of(index)
    return Finding(
        "inplace",
        "warning",
        f"`{root}.backward()` would raise at {name}. The reason: {by} after it was saved.",
        f"`{root}.backward()` would raise: {shown} was modified in place.",
        None,
        name,
        graph.uid[index],
        graph.place_of(index),
        tensor=tensor,
        modified_at=write.place,
        uids=(graph.uid[index],),
        fixes=for_inplace(record, call, graph, writes, None, tensor),
    )
