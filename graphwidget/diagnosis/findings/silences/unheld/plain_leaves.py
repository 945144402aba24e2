"""Plain tensors that the program made to require grad, that the loss depends on, and that nothing trains.

An input may require grad, too: for its gradient, or by habit. So only a leaf is told that is no batch, whose values are
uniform, whose gradient only adds up, and with respect to which the program never asks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, finding_of, named
from graphwidget.diagnosis.findings.silences.unheld.left_out import added_to, is_meant
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.cells import Cells
from graphwidget.diagnosis.source.paths import is_assignable
from graphwidget.diagnosis.wording import at, short, spoken
from graphwidget.model import Finding, Fix, Record, UnheldLeaf

__all__ = ["is_untrained", "made_to_train"]


def made_to_train(record: Record, leaf: UnheldLeaf) -> Line | None:
    """The one line that made such a leaf; None: there is none, or its gradient may have a use."""
    name = spoken(leaf.path)
    last = syntax.last_name(name)
    if (
        not (leaf.grows and leaf.uniform and leaf.dims in (0, 1))
        or leaf.by_hand
        or "[" in name
        or not is_assignable(name)
    ):
        return None
    texts = Cells.of(record).latest
    made = [Line(run, one) for run in texts for one, _ in syntax.assigned_as(run.source, last)]
    if len(made) != 1 or "requires_grad" not in ast.unparse(made[0].statement) or _is_asked(record, leaf.path):
        return None
    return None if any(_may_use(run.source, last) for run in texts) else made[0]


def _is_asked(record: Record, path: str) -> bool:
    """Whether a call was made with respect to a leaf."""
    return any(
        path
        in {*one.paths, *(call.graph.leaves[one.node].paths if call.graph and one.node in call.graph.leaves else ())}
        for call in record.calls
        for one in call.inputs or ()
    )


def _may_use(text: str, last: str) -> bool:
    """Whether a text may read or clear the gradient of a tensor that is called so: by a name that may be any."""
    of_parameters = set(_loops_over_parameters(text))
    for one in syntax.nodes_of(text):
        if isinstance(one, ast.Attribute) and one.attr in ("grad", "register_hook", "retain_grad"):
            whose = one.value
            if isinstance(whose, ast.Attribute):
                if whose.attr == last:
                    return True
            elif not isinstance(whose, ast.Name) or whose.id not in of_parameters | {"autograd"}:
                if not (isinstance(whose, ast.Name) and whose.id == "torch"):
                    return True
    return False


def _loops_over_parameters(text: str) -> Iterator[str]:
    """The variables of loops over parameters of modules and optimizers."""
    for one in syntax.nodes_of(text):
        if isinstance(one, (ast.For, ast.comprehension)) and "param" in ast.unparse(one.iter):
            yield from syntax.names_in(one.target)


def is_untrained(record: Record, line: Line, leaf: UnheldLeaf, maker: Line | None) -> Iterator[Finding]:
    """The finding of such a leaf, if no line says that it is left out on purpose."""
    if is_meant(record, maker, leaf):
        return
    how, edits = added_to(record, maker, spoken(leaf.path))
    yield finding_of(
        named([leaf]),
        line.place,
        f"{line.shown} made it to require grad. Its gradient adds up from pass to pass, and nothing uses it.",
        [leaf],
        Fix(
            "new_optimizer",
            f"If it is to be trained, give it to the optimizer, too{f': {short(how)}' if how else ''}.",
            False,
            at(maker.place if maker is not None else line.place),
            edits=edits,
        ),
    )
