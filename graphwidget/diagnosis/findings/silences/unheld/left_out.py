"""Modules of which no optimizer holds anything, and that nothing shows to be left out on purpose."""

from __future__ import annotations

import re
from dataclasses import replace

from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, finding_of, named, parts_of
from graphwidget.diagnosis.findings.silences.unheld.replaced import takes_all
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.wording import at, short, spoken
from graphwidget.model import Finding, Fix, Record, UnheldLeaf

__all__ = ["is_meant", "left_out"]


def is_meant(record: Record, maker: Line, leaf: UnheldLeaf) -> bool:
    """Whether a leaf may be left out on purpose.

    The line that made the optimizer may choose among parameters, or name a module around the leaf and a part of it; or
    a line says of the leaf's variable that it is not to be trained here, or has been trained before.
    """
    if not takes_all(maker) or syntax.words_in(maker.statement).intersection(parts_of(leaf.path)):
        return True
    name = re.escape(root_of(spoken(leaf.path)))
    said = rf"\b{name}\b[^=\n]*\.(eval|load_state_dict|requires_grad_)\(|\b{name}\b[^\n]*(deepcopy|pretrained|\.load)"
    return any(re.search(said, run.source) for run in record.runs.values())


def left_out(maker: Line, leaves: list[UnheldLeaf]) -> Finding:
    """The finding. It need not be a mistake, so it is no warning."""
    shown = named(leaves)
    they, them = ("it", "it") if len(shown) == 1 else ("they", "them")
    whole = root_of(spoken(leaves[0].path))
    fix = Fix(
        "new_optimizer",
        f"If {they} should be trained, give {them} to the optimizer, too. If not, `{whole}.requires_grad_(False)` "
        "saves the work for gradients that nothing uses.",
        False,
        at(maker.place),
    )
    why = f"{short(maker.place.source)} has others."
    return replace(finding_of(shown, maker.place, why, leaves, fix), severity="info")
