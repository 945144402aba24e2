"""The finding for `loss.backward()` where `loss` is no tensor."""

from __future__ import annotations

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.no_tensors import nothing, numbers, several, uncalled
from graphwidget.diagnosis.findings.refusals.no_tensors.asked import asked
from graphwidget.model import Finding

__all__ = ["of_line"]

_NUMBERS = ("int", "float", "bool", "complex", "number")


def of_line(failure: Failure) -> Finding | None:
    """Why what a line calls `backward` on is no tensor, and what to write; None: it raised something else."""
    one = asked(failure)
    if one is None:
        return uncalled.of_settings(failure) or uncalled.of_iterable(failure)
    number = one.kind in _NUMBERS or one.kind.startswith("numpy.")
    if one.attribute in ("item", "detach"):
        return numbers.of_a_number(one) if number else None
    if number:
        return numbers.found(one)
    if one.kind == "NoneType":
        return nothing.found(one)
    if one.kind in uncalled.FUNCTIONS:
        return uncalled.of_method(one)
    return several.of_another_owner(one) or uncalled.of_criterion(one) or several.found(one)
