"""Optimizers that take no sparse gradients: ``Adam(emb.parameters())`` where the embedding has ``sparse=True``."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.findings.refusals.makers import CallText, calls
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import Finding, Fix

__all__ = ["of_optimizer"]


def of_optimizer(failure: Failure) -> Finding:
    """A step of an optimizer that met a sparse gradient."""
    first = (failure.run.error or "").split(" ", 1)[0]
    optimizer = f"`{first}`" if first.isidentifier() and first[0].isupper() else "The optimizer"
    found = [
        one for name in ("Embedding", "EmbeddingBag", "embedding", "embedding_bag") for one in _sparse(failure, name)
    ]
    made = found[0] if len(found) == 1 else None
    place = place_of(made.run, made.call.lineno) if made is not None else None
    source = f"{short(place.source)} ({where(place)}) makes its gradient sparse." if place is not None else ""
    return failure.finding(
        f"{optimizer} takes no sparse gradients.",
        f"{short(failure.text)} met a gradient that lists only the rows that were used. "
        f"{source or 'A layer made it so.'} {optimizer} has no rule for the rows that are left out.",
        _dense(failure, made),
        failure.fix(
            "sparse_optimizer",
            "Or give the parameters of that layer to an optimizer of their own that takes sparse gradients: "
            "`torch.optim.SparseAdam`, or `SGD` without momentum.",
        ),
        cause=place,
    )


def _sparse(failure: Failure, name: str) -> list[CallText]:
    given = [(one, one.argument("sparse")) for one in calls(failure.record, name)]
    return [one for one, value in given if value is not None and ast.unparse(value) == "True"]


def _dense(failure: Failure, made: CallText | None) -> Fix:
    value = made.argument("sparse") if made is not None else None
    edits = (
        text_edit.replace_node(made.run.cell, made.run.source, value, "False")
        if made is not None and value is not None
        else ()
    )
    spot = at(place_of(made.run, made.call.lineno)) if made is not None else at(failure.place)
    price = "Memory for a gradient of all rows."
    return Fix("dense_gradient", "Make the gradient dense: `sparse=False`.", False, spot, price, edits=edits)
