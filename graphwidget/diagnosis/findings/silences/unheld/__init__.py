"""Leaves that backward reaches and no optimizer holds: replaced or added after the optimizer was made, or in a list.

Leaves may be left out on purpose. So a warning needs a reason: parameters in a container of Python's that no module
registers; a tensor as an attribute of a module that is no parameter; an optimizer that was made of all parameters of a
module, of which the leaf is one now; parameters that only an optimizer holds; parameters that were collected for an
optimizer and handed to nothing, or in a container that gets to none; parameters that were frozen at earlier steps; a
loop that sorts parameters into groups by tests, of which none holds for the leaf; or a tensor of one value, made to
require grad, whose gradient adds up and has no use.
Of other modules that the loss trains and no optimizer holds it is an information, unless they were never trained.

What an optimizer holds that has made no step is another matter: it may have been going to, before an error.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphwidget.diagnosis.findings.silences.unheld.attributes import is_no_parameter, plain_attribute
from graphwidget.diagnosis.findings.silences.unheld.containers import container_lines, in_container
from graphwidget.diagnosis.findings.silences.unheld.copied import are_copies, is_copied
from graphwidget.diagnosis.findings.silences.unheld.groups.collected import collected, handed_to_nothing
from graphwidget.diagnosis.findings.silences.unheld.groups.collected import is_of as is_collected
from graphwidget.diagnosis.findings.silences.unheld.groups.dropped import (
    dropped,
    gets_to_no_optimizer,
    may_be_of,
)
from graphwidget.diagnosis.findings.silences.unheld.groups.ungrouped import fits_no_test, in_no_group, sortings
from graphwidget.diagnosis.findings.silences.unheld.joined import came_later, is_at_rest, joined_at
from graphwidget.diagnosis.findings.silences.unheld.leaves import Line
from graphwidget.diagnosis.findings.silences.unheld.left_out import is_meant, left_out
from graphwidget.diagnosis.findings.silences.unheld.plain_leaves import is_untrained, made_to_train
from graphwidget.diagnosis.findings.silences.unheld.replaced import (
    is_of,
    made_too_early,
    optimizers_made,
)
from graphwidget.diagnosis.findings.silences.unheld.thawed import thawed_later
from graphwidget.diagnosis.findings.silences.unheld.waiting import without_a_step
from graphwidget.model import Finding, MeasuredJoined, Record, UnheldLeaf

__all__ = ["find"]


def find(record: Record) -> Iterator[Finding]:
    """Yield one finding for the leaves of each reason."""
    contained: dict[str, tuple[list[Line], list[UnheldLeaf]]] = {}
    left: list[UnheldLeaf] = []
    thawed: list[UnheldLeaf] = []
    yield from without_a_step(record, [leaf for leaf in record.unheld if leaf.waiting])
    for leaf in record.unheld:
        if leaf.waiting:
            continue
        lines = container_lines(record, leaf)
        if leaf.container is not None and lines is not None:
            all_lines, leaves = contained.setdefault(leaf.container.class_name, ([], []))
            all_lines.extend(line for line in lines if line not in all_lines)
            leaves.append(leaf)
        elif leaf.parameter:
            left.append(leaf)
        elif (line := plain_attribute(record, leaf)) is not None:
            yield is_no_parameter(record, line, leaf)
        elif (line := made_to_train(record, leaf)) is not None and len(makers := optimizers_made(record)) <= 1:
            yield from is_untrained(record, line, leaf, next(iter(makers), None))
    for lines, leaves in contained.values():
        yield in_container(record, lines, leaves)
    makers = optimizers_made(record) if left else []
    for one in collected(record) if left else ():
        of_it = [leaf for leaf in left if is_collected(one, leaf)]
        left = [leaf for leaf in left if leaf not in of_it]
        if of_it:
            yield handed_to_nothing(one, of_it)
    for sorting in sortings(record) if left else ():
        outside = [leaf for leaf in left if fits_no_test(sorting, leaf)]
        left = [leaf for leaf in left if leaf not in outside]
        if outside:
            yield in_no_group(sorting, outside)
    for container in dropped(record) if left else ():
        inside = [leaf for leaf in left if leaf.container is None and may_be_of(container, leaf)]
        left = [leaf for leaf in left if leaf not in inside]
        if inside:
            yield gets_to_no_optimizer(container, inside)
    made: dict[int, tuple[Line | None, list[UnheldLeaf]]] = {}
    later: list[tuple[MeasuredJoined, UnheldLeaf]] = []
    others: list[UnheldLeaf] = []
    for leaf in left:
        if any(one.run.file is None and one.run.run > (leaf.place.run or 0) for one in makers):
            continue  # an optimizer has been made since
        if leaf.container is None and (joined := joined_at(record, leaf)) is not None:
            if joined.replacing or not is_at_rest(record, leaf):
                later.append((joined, leaf))
            continue
        if leaf.thawed and not (leaf.by_hand or leaf.orphans):
            thawed.append(leaf)  # it was there when the optimizer was made
            continue
        early = [] if leaf.container is not None else [one for one in makers if is_of(one, leaf.path)]
        found = early or (makers if leaf.orphans else [])
        if len(found) == 1 or (leaf.orphans and (found or leaf.partly_held)):
            maker = found[0] if len(found) == 1 else None
            made.setdefault(id(maker and maker.statement), (maker, []))[1].append(leaf)
        elif len(makers) <= 1 and not is_meant(record, next(iter(makers), None), leaf):
            others.append(leaf)
    yield from came_later(record, later)
    for maker, leaves in made.values():
        yield (is_copied if are_copies(leaves) else made_too_early)(record, maker, leaves)
    if thawed:
        yield thawed_later(record, makers, thawed)
    told = record.idle or any(call.result == "raised" for call in record.calls)
    if others and not told:  # beside an error, or a step that changes nothing, it would distract
        maker = next(iter(makers), None)
        yield from [is_copied(record, maker, others)] if are_copies(others) else left_out(record, maker, others)
