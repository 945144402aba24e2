"""Findings: calls that failed, calls that would fail, and graphs that pile up.

`DETECTORS` lists the functions that find something, `EXPLANATIONS` the functions that explain a call that raised. The
rules here hold for all findings: each is returned once, its fixes destroy nothing, and at most three are offered. If
nothing is wrong, there is no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from graphwidget.diagnosis.edited_files import with_edited_files
from graphwidget.diagnosis.findings import (
    asked_inputs,
    inplace,
    leak,
    no_grad,
    none_grads,
    refused,
    second_backward,
    silent,
)
from graphwidget.diagnosis.findings.refusals import checkpoints, inference, out_of_memory, replicas, unexplained
from graphwidget.diagnosis.findings.refusals.checks import checks
from graphwidget.diagnosis.findings.refusals.gradients import not_a_number, types_apart, unlike, without_formula
from graphwidget.diagnosis.findings.refusals.leaves.piled_up import with_causes
from graphwidget.diagnosis.findings.refusals.unused_inputs import unused
from graphwidget.diagnosis.findings.refusals.user_code import custom_functions, hooks, inner_calls, own_code, unpacked
from graphwidget.diagnosis.findings.silences import (
    computed_parameter,
    custom,
    false_flags,
    flat,
    not_called,
    starved,
    ungiven,
    unheld,
    zero_flow,
)
from graphwidget.diagnosis.findings.silences.clips import loop_order, scaled_clip, used_up
from graphwidget.diagnosis.findings.silences.constants import gradients, measured_terms, penalties, terms
from graphwidget.diagnosis.findings.silences.frozen import flags_of_parts, held_frozen
from graphwidget.diagnosis.findings.silences.hooks import unrun
from graphwidget.diagnosis.findings.silences.recomputed import late_variables
from graphwidget.diagnosis.findings.silences.steps import (
    cleared_early,
    closure,
    dropped_detach,
    kept_grads,
    left_over,
    moved_while_frozen,
    not_finite,
    steps_by_hand,
    thrown_away,
    without_effect,
)
from graphwidget.diagnosis.findings.silences.steps.idle import idle_step
from graphwidget.diagnosis.findings.silences.unheld import joined, late_parameter
from graphwidget.diagnosis.findings.silences.unheld.groups import emptied
from graphwidget.diagnosis.fixes.harm import destroys, stops_training
from graphwidget.diagnosis.locating import located
from graphwidget.diagnosis.main_function import seen_from_main
from graphwidget.diagnosis.numbering import with_numbers, without_numbers
from graphwidget.diagnosis.one_cause import each_cause_once
from graphwidget.diagnosis.reuse.reuse import call_at
from graphwidget.diagnosis.source.depth import room
from graphwidget.diagnosis.source.fitting import checked, made_once_run_often, with_display
from graphwidget.diagnosis.wording import by_anomaly_mode, where
from graphwidget.model import BackwardCall, CellRun, Finding, Fix, Record, Scene, torch_messages

__all__ = [
    "DETECTORS",
    "EXPLANATIONS",
    "diagnose",
    "may_have_constant_terms",
    "may_have_joined",
    "may_have_other_unpacked",
    "may_have_unrun_hooks",
    "of_call",
    "of_run",
    "reason_of",
]

MOST_FIXES = 3

Detector = Callable[[Record], Iterable[Finding]]
Explanation = Callable[[Record, BackwardCall], Finding | None]

# Explanations of calls that raised, by the reason in torch's message. None: this one cannot explain the call.
EXPLANATIONS: dict[str, Explanation] = {
    "freed": second_backward.explain,
    "inplace": inplace.explain,
    "input": asked_inputs.explain,
    "no_grad": no_grad.explain,
    "unused": unused.explain,
    "gradient": lambda record, call: (
        custom_functions.of_gradient(record, call) or unlike.of_operation(record, call) or unlike.of_given(record, call)
    ),
    "not_a_number": not_a_number.of_call,
    "no_formula": without_formula.of_call,
    "hook_changed": hooks.of_changed,
    "no_backward": custom_functions.of_no_backward,
    "once_differentiable": custom_functions.of_once_differentiable,
    "inference": inference.of_call,
    "recomputed": checkpoints.of_recomputation,
    "unpacked_twice": checkpoints.of_unpacked_twice,
    "checkpoint_inputs": checkpoints.of_inputs,
    "checkpoint_not_needed": checkpoints.of_unneeded,
    "ready_twice": replicas.of_ready_twice,
    "out_of_memory": out_of_memory.of_call,
    "types": types_apart.explain,
}


def _calls_that_raised(record: Record) -> Iterator[Finding]:
    """Yield the findings of calls that raised, the newest call first."""
    for call in reversed(record.calls):
        yield from _of_call(record, call)


# In the order in which they run. Within one severity, earlier findings come first; of equal findings, the first stays.
DETECTORS: tuple[Detector, ...] = (
    _calls_that_raised,
    refused.of_cells,
    leak.find,
    silent.find,
    not_called.find,
    not_finite.find,
    idle_step.find,
    cleared_early.find,
    ungiven.find,
    starved.find,
    unheld.find,
    late_parameter.find,
    computed_parameter.find,
    false_flags.find,
    flags_of_parts.find,
    late_variables.find,
    moved_while_frozen.find,
    held_frozen.find,
    emptied.find,
    flat.find,
    zero_flow.find,
    gradients.find,
    penalties.find,
    terms.find,
    measured_terms.find,
    kept_grads.find,
    thrown_away.find,
    dropped_detach.find,
    closure.find,
    left_over.find,
    steps_by_hand.find,
    without_effect.find,
    loop_order.find,
    scaled_clip.find,
    used_up.find,
    custom.find,
    unrun.find,
    none_grads.of_reads,
    inplace.would_fail,
)

# Reasons that are the same whether the call itself raised, or a call inside it: of a checkpoint, or of the user's code.
_WHATEVER_CALLED = ("inference", "recomputed", "unpacked_twice", "ready_twice", "out_of_memory")

_SEVERITIES = ("error", "warning", "info")
_SIMULATED = ("second_backward", "inplace")  # kinds of finding whose fixes are simulated on the graph


@room
def diagnose(record: Record) -> tuple[Finding, ...]:
    """Return all findings of a record: errors first, the newest error at the top.

    Parameters
    ----------
    record
        The present graph, the calls so far, the writes and the runs of cells.

    Returns
    -------
    Findings, each at most once. Empty when nothing is wrong.
    """
    record = seen_from_main(with_numbers(record))
    unique: dict[tuple[object, ...], Finding] = {}
    for detector in DETECTORS:
        for finding in detector(record):
            unique.setdefault(_identity(record, finding), finding)
    piled = tuple(name for finding in unique.values() if finding.kind == "leak" for name in finding.carriers)
    found = with_causes(tuple(unique.values()))
    ready = [_ready(record, finding) for finding in found if not _is_about_a_pile(finding, piled)]
    ready.sort(key=lambda finding: (_SEVERITIES.index(finding.severity), -_run(record, finding)))
    return tuple(each_cause_once(record, ready))


@room
def may_have_constant_terms(record: Record) -> bool:
    """Return whether another run, which measures where values leave the graph, may find that a term is a constant."""
    return measured_terms.may_be_there(seen_from_main(with_numbers(record)))


@room
def may_have_other_unpacked(record: Record) -> bool:
    """Return whether another run, which watches hooks for saved tensors, may find that they explain a call's error."""
    return unpacked.may_be_there(seen_from_main(with_numbers(record)))


@room
def may_have_joined(record: Record) -> bool:
    """Return whether another run, which watches what modules are given, may find which line gave them parameters."""
    return joined.may_be_there(seen_from_main(with_numbers(record)))


@room
def may_have_unrun_hooks(record: Record) -> bool:
    """Return whether another run, which watches the backward hooks, may find that some never ran."""
    return unrun.may_be_there(seen_from_main(with_numbers(record)))


def _is_about_a_pile(finding: Finding, piled: tuple[str, ...]) -> bool:
    """Whether a finding says what a call would do with something that piles up: nobody intends to run that."""
    ahead = finding.kind == "inplace" and finding.call is None and finding.severity != "error"
    return ahead and bool(piled) and finding.path[:1] != () and finding.path[0].startswith(piled)


def _run(record: Record, finding: Finding) -> int:
    """Return the run of the cell in which an error happened. Other findings are about the present: 0."""
    call = call_at(record.calls, finding.call)
    place = call.place if call is not None else finding.made_at
    return place.run or 0 if finding.severity == "error" and place is not None else 0


@room
def of_call(record: Record, call: BackwardCall) -> tuple[Finding, ...]:
    """Return the findings of one call, as `diagnose` does: for the note under its traceback."""
    record = seen_from_main(with_numbers(record))
    same = call_at(record.calls, call.n) or call
    return tuple(_ready(record, finding) for finding in _of_call(record, same, leaving=True))


@room
def of_run(record: Record, run: CellRun) -> Finding | None:
    """Return what there is to say of the error of a cell that no call raised: for a note under its traceback."""
    found = refused.of_run(record, run)
    return _ready(record, found) if found is not None else None


def reason_of(call: BackwardCall) -> str | None:
    """Return why a call raised, from torch's message; None if unknown."""
    message = call.error or ""
    return next((reason for reason, words in torch_messages.AUTOGRAD_CALL if torch_messages.says(message, words)), None)


def _of_call(record: Record, call: BackwardCall, *, leaving: bool = False) -> Iterator[Finding]:
    """Yield the finding of a call that raised: the explanation of its message, else where it came from."""
    if call.result != "raised":
        return
    caught = unexplained.is_caught(record, call, leaving=leaving)
    found = (
        unpacked.of_call(record, call, caught=caught)
        or inner_calls.of_call(record, call, reason_of, _by_reason)
        or checks.of_call(record, call, caught=caught)
        or _explained(record, call)
        or own_code.of_call(record, call, caught=caught)
        or unpacked.of_unmeasured(record, call, caught=caught)
        or unexplained.of_call(record, call, caught=caught)
    )
    if found is not None:
        yield found


def _by_reason(reason: str, record: Record, call: BackwardCall) -> Finding | None:
    return EXPLANATIONS[reason](record, call)


def _explained(record: Record, call: BackwardCall) -> Finding | None:
    """Return the explanation of a call's message; None if it has none."""
    reason = reason_of(call)
    within = record.scenes.get(call.n, Scene()).raised_in
    if (
        reason is None
        or (within == "call" and reason not in _WHATEVER_CALLED)
        or (within == "python" and reason in ("no_grad", "input", "unused"))
    ):
        return None  # the message is about another call's graph, or is the user's own
    return _by_reason(reason, record, call)


def _identity(record: Record, finding: Finding) -> tuple[object, ...]:
    """Return a key that equal findings share: kind, severity, names, and places.

    The places are the failed line, and the line that made the tensor or node it failed on.
    """
    call = call_at(record.calls, finding.call)
    if call is None or not where(call.place):
        place: tuple[object, ...] = (finding.call, finding.node_uid, where(finding.made_at))
    else:
        place = (where(call.place), call.place.run, where(finding.made_at), finding.node)
    return (finding.kind, finding.severity, *place, finding.carriers, finding.tensor, finding.unexplained)


def _ready(record: Record, finding: Finding) -> Finding:
    """Return a finding with the offered fixes, their edits shown as lines of the user's cells."""
    text = finding.text + by_anomaly_mode(finding.made_at, finding.node)
    found = located(record, replace(finding, text=text, fixes=_offered(record, finding)))
    return without_numbers(record, with_edited_files(record, found))


def _offered(record: Record, finding: Finding) -> tuple[Fix, ...]:
    """Return at most three fixes to offer, none of which destroys anything.

    If a simulated fix works and starves no leaf, only the fixes that work are offered.
    """
    call = call_at(record.calls, finding.call)
    graph = call.graph if call is not None else None
    shown = [with_display(record, fix) for fix in finding.fixes]
    fixes = [checked(record, fix) for fix in shown if not destroys(record, fix, graph)]
    if finding.kind in ("no_grad", "silent"):
        fixes = [replace(f, verified=f.verified and not made_once_run_often(record, f)) for f in fixes]
    fixes = [replace(f, verified=f.verified and not stops_training(record, f, call)) for f in fixes]
    if finding.kind in _SIMULATED and any(fix.verified and not fix.starves for fix in fixes):
        fixes = [fix for fix in fixes if fix.verified]
    return tuple(fixes[:MOST_FIXES])
