"""Runs a program once more to measure where values left the graph."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphwidget.diagnosis.diagnose import (
    diagnose,
    may_have_constant_terms,
    may_have_joined,
    may_have_other_unpacked,
    may_have_unrun_hooks,
)
from graphwidget.diagnosis.reuse.reuse import call_at
from graphwidget.model import (
    FrozenModule,
    IdleModule,
    Lineage,
    MeasuredConstant,
    MeasuredCut,
    MeasuredEmptied,
    MeasuredFrozen,
    MeasuredHook,
    MeasuredIdle,
    MeasuredJoined,
    MeasuredLate,
    MeasuredLeaf,
    MeasuredNonFinite,
    MeasuredTerm,
    MeasuredUnpacked,
    MeasuredZeros,
    PlainInput,
    TensorForm,
    TextLine,
)
from graphwidget.trials.attempt import MEMORY, START, Ran, run
from graphwidget.trials.cut_findings import failed_by_a_cut
from graphwidget.trials.files.kept import PutBack
from graphwidget.trials.rerun import Job
from graphwidget.trials.supervised import Limits

__all__ = ["wants_cuts", "wants_lineage", "wants_unpacked", "with_lineage"]

SECONDS = 10.0  # that it may take, if the program itself took less than a quarter of that


def wants_lineage(ran: Ran) -> bool:
    """Whether another run may tell more: where values left the graph, what hooks did, what froze, or what joined."""
    hooks = wants_unpacked(ran) or may_have_unrun_hooks(ran.record)
    return wants_cuts(ran) or hooks or ran.record.held_frozen or may_have_joined(ran.record)


def wants_unpacked(ran: Ran) -> bool:
    """Whether a call failed that may have been given back other tensors than were saved."""
    return may_have_other_unpacked(ran.record)


def wants_cuts(ran: Ran) -> bool:
    """Whether a finding depends on which line cut the graph, or made gradients zero or no finite numbers."""
    no_graph = any(failed_by_a_cut(finding, call_at(ran.record.calls, finding.call)) for finding in ran.findings)
    steps = ran.record.starved or ran.record.idle or ran.record.nonfinite
    return no_graph or ran.zero_grads or bool(steps) or may_have_constant_terms(ran.record)


def with_lineage(ran: Ran, seconds: float | None, cancelled: Callable[[], bool] = lambda: False) -> tuple[Ran, PutBack]:
    """The run with the findings that follow from its measured lineage; as it is, where it could not be measured.

    Also what came of its files, which says why it could not, if it is for them.

    Parameters
    ----------
    seconds
        How long the program may run; None: as for a trial.
    cancelled
        Asked again and again whether to stop.
    """
    about = ((one, call_at(ran.record.calls, one.call)) for one in ran.findings)
    call = next((one.call for one, failed in about if failed_by_a_cut(one, failed)), None)
    start = max(START, 2 * ran.rerun.start_seconds)
    seconds = seconds or max(SECONDS, 4 * ran.seconds)
    began = time.monotonic()
    lineage, files = _lineage_of(ran, call, seconds, seconds + start, cancelled)
    if lineage is None or files.why_not:
        return ran, files
    record = replace(ran.record, lineage=lineage)
    followed = max(0.0, time.monotonic() - began - ran.rerun.start_seconds)
    return replace(ran, record=record, findings=diagnose(record), followed=followed), files


def _lineage_of(
    ran: Ran, call: int | None, seconds: float, whole: float, cancelled: Callable[[], bool]
) -> tuple[Lineage | None, PutBack]:
    """Measure a program's lineage in a child process; None: that failed.

    Parameters
    ----------
    call
        The n of the call whose root has no graph; None: the program runs to its end.
    seconds, whole
        How long the program may run; how long the child may live.
    """
    rerun = ran.rerun
    with tempfile.TemporaryDirectory() as folder:
        job = Job(
            rerun.target,
            list(rerun.arguments),
            rerun.module,
            list(rerun.cells),
            list(rerun.order),
            rerun.notebook,
            {},
            ran.begun,
            call,
            seconds,
            time.time() + whole - 1.0,
            str(Path(folder, "lineage.json")),
            lineage="alone",
            nonfinite=bool(ran.record.nonfinite),
            ends_at=ran.ends_at,
        )
        _ending, files = run(job, ran, rerun, Limits(whole, 2 * ran.memory + MEMORY), cancelled)
        left = Path(job.account)
        return _read(json.loads(left.read_text(encoding="utf-8"))) if left.exists() else None, files


def _read(fields: Mapping[str, Any]) -> Lineage:
    frozen = tuple(FrozenModule(one["name"], _lines(one)) for one in fields["frozen"])
    zeros = tuple(MeasuredZeros(**{**one, "leaves": tuple(one["leaves"])}) for one in fields["zeros"])
    nonfinite = _nonfinite(one) if (one := fields["nonfinite"]) is not None else None
    made = tuple(MeasuredLeaf(one["call"], one["by"], _lines(one), _cuts(one["cuts"])) for one in fields["made"])
    terms = tuple(MeasuredTerm(_lines(one), _cuts(one["cuts"]), one["number"]) for one in fields["terms"])
    late = tuple(MeasuredLate(one["input"], _lines(one, "used"), _lines(one, "told")) for one in fields["late"])
    return Lineage(
        fields["call"],
        _cuts(fields["behind_root"]),
        frozen,
        _cuts(fields["cuts"]),
        zeros,
        nonfinite,
        made,
        _cuts(fields["ends"]),
        terms,
        late,
        tuple(map(_emptied, fields["emptied"])),
        tuple(map(_hook, fields["hooks"])),
        tuple(map(_constant, fields["constants"])),
        tuple(map(_unpacked, fields["unpacked"])),
        tuple(map(_frozen, fields["held_frozen"])),
        tuple(map(_joined, fields["joined"])),
        _idle(one) if (one := fields["idle"]) is not None else None,
    )


def _nonfinite(one: Mapping[str, Any]) -> MeasuredNonFinite:
    lines = {name: _lines(one, name) for name in ("stepped", "made", "behind_made")}
    return MeasuredNonFinite(**{**one, **lines, "paths": tuple(one["paths"])})


def _emptied(one: Mapping[str, Any]) -> MeasuredEmptied:
    lines = {name: _lines(one, name) for name in ("cleared", "stepped")}
    return MeasuredEmptied(**{**one, **lines, "paths": tuple(one["paths"])})


def _hook(one: Mapping[str, Any]) -> MeasuredHook:
    lines = {name: _lines(one, name) for name in ("lines", "called", "frozen")}
    plain = PlainInput(**one["plain"]) if one["plain"] is not None else None
    return MeasuredHook(
        **{**one, **lines, "hook": TextLine(**one["hook"]), "calls": tuple(one["calls"]), "plain": plain}
    )


def _constant(one: Mapping[str, Any]) -> MeasuredConstant:
    return MeasuredConstant(**{**one, "lines": _lines(one), "beside": tuple(map(tuple, one["beside"]))})


def _unpacked(one: Mapping[str, Any]) -> MeasuredUnpacked:
    forms = {name: TensorForm(**{**one[name], "shape": tuple(one[name]["shape"])}) for name in ("given", "returned")}
    hooks = {name: TextLine(**one[name]) if one[name] is not None else None for name in ("pack", "unpack")}
    return MeasuredUnpacked(**{**one, **forms, **hooks, "lines": _lines(one)})


def _frozen(one: Mapping[str, Any]) -> MeasuredFrozen:
    lines = {name: _lines(one, name) for name in ("lines", "stepped")}
    return MeasuredFrozen(**{**one, **lines, "paths": tuple(one["paths"])})


def _joined(one: Mapping[str, Any]) -> MeasuredJoined:
    lines = (_lines(one, name) for name in ("lines", "made", "stepped"))
    return MeasuredJoined(*lines, tuple(one["paths"]), one["replacing"])


def _idle(one: Mapping[str, Any]) -> MeasuredIdle:
    modules = tuple(IdleModule(**each) for each in one["modules"])
    return MeasuredIdle(tuple(one["paths"]), one["count"], modules, tuple(one["frozen"]), _lines(one))


def _cuts(found: list[Mapping[str, Any]]) -> tuple[MeasuredCut, ...]:
    return tuple(
        MeasuredCut(
            _lines(one),
            one["by"],
            one["grad_mode"],
            tuple(one["leaves"]),
            one["wanted"],
            _lines(one, "switched"),
            tuple((number, at) for number, at in one["positions"]),
            one["used"],
            tuple(one["copies"]),
            one["chosen"],
            tuple(one["asked"]),
            tuple((name, twin) for name, twin in one["twins"]),
            _lines(one, "used_at"),
            one["checkpointed"],
        )
        for one in found
    )


def _lines(fields: Mapping[str, Any], name: str = "lines") -> tuple[TextLine, ...]:
    return tuple(TextLine(**one) for one in fields[name])
