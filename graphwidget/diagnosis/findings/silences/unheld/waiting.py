"""Leaves of an optimizer that makes no step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graphwidget.diagnosis.findings.silences.unheld.leaves import MOST_NAMED, Line, finding_of, named
from graphwidget.diagnosis.findings.silences.unheld.replaced import is_of, optimizers_made
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.wording import at, names
from graphwidget.model import Finding, Fix, Record, UnheldLeaf

__all__ = ["without_a_step"]


def without_a_step(record: Record, leaves: list[UnheldLeaf]) -> Iterator[Finding]:
    """Yield one finding for what each such optimizer holds; none in a program that an error has ended before."""
    if any(run.error is not None for run in record.runs.values()):
        return
    makers = optimizers_made(record) if leaves else []
    by_maker: dict[int, tuple[Line, list[UnheldLeaf]]] = {}
    for leaf in leaves:
        found = [one for one in makers if is_of(one, leaf.path)]
        new = any(one.run.file is None and one.run.run > (leaf.place.run or 0) for one in found)
        if len(found) == 1 and not new:  # one that has been made since may still make a step
            by_maker.setdefault(id(found[0].statement), (found[0], []))[1].append(leaf)
    for maker, held in by_maker.values():
        yield _of(maker, held)


def _of(maker: Line, leaves: list[UnheldLeaf]) -> Finding:
    shown, owner = named(leaves), next(iter(syntax.targets(maker.statement)), "")
    one, optimizer = len(shown) == 1, f"`{owner}`" if owner else "the optimizer"
    fix = Fix(
        "call_it",
        f"Let {optimizer} make a step, too, behind the backward call: `{owner or 'optimizer'}.step()`.",
        False,
        at(maker.place),
    )
    why = f"{maker.shown} made one that holds {'it' if one else 'them'}, and that one makes no step."
    finding = finding_of(shown, maker.place, why, leaves, fix)
    headline = f"{names(shown, MOST_NAMED)} {'is' if one else 'are'} never trained: {optimizer} makes no step."
    return replace(finding, headline=headline)
