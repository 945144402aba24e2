"""Modules of which no optimizer holds anything, and that nothing shows to be left out on purpose.

Whether that is a mistake is not known: a module may have been trained before. What is uniform has not been: weights of
losses that begin as ones, a temperature.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace

from graphwidget.diagnosis.findings.silences.unheld.groups.whole import groups_given
from graphwidget.diagnosis.findings.silences.unheld.leaves import Line, finding_of, named, parts_of, unheld_wholes
from graphwidget.diagnosis.findings.silences.unheld.named_there import named_there
from graphwidget.diagnosis.findings.silences.unheld.replaced import first_arguments, given_of, takes_all
from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.paths import root_of
from graphwidget.diagnosis.source.pytorch.names import OPTIMIZER
from graphwidget.diagnosis.wording import at, names, short, spoken
from graphwidget.model import Finding, Fix, Place, Record, UnheldLeaf

__all__ = ["added_to", "is_meant", "left_out"]

_OF_PARAMETERS = ("parameters", "list", "tuple", "filter", "chain")  # calls that give parameters, and no groups


def is_meant(record: Record, maker: Line | None, leaf: UnheldLeaf) -> bool:
    """Whether a leaf may be left out on purpose.

    The line that made the optimizer may choose among parameters, or name a module around the leaf and a part of it; or
    a line says of the leaf's variable that it is not to be trained here, or has been trained before.

    Parameters
    ----------
    maker
        The line that made the optimizer; None: a library did.
    """
    if maker is None and (leaf.by_hand or any(OPTIMIZER.search(run.source) for run in record.runs.values())):
        return True  # lines of the program chose by hand
    if maker is not None and (
        not takes_all(maker) or syntax.words_in(maker.statement).intersection(parts_of(leaf.path))
    ):
        return True
    name = re.escape(root_of(spoken(leaf.path)))
    said = rf"\b{name}\b[^=\n]*\.(eval|load_state_dict|requires_grad_)\(|\b{name}\b[^\n]*(deepcopy|pretrained|\.load)"
    used = rf"^(?!\s*(?:print|assert)\b).*\b{re.escape(parts_of(leaf.path)[-1])}\.grad\b(?!\s*= None|\.zero_|\s+is )"
    return any(re.search(said, run.source) or re.search(used, run.source, re.M) for run in record.runs.values())


def left_out(record: Record, maker: Line | None, leaves: list[UnheldLeaf]) -> Iterator[Finding]:
    """The findings, one for each variable whose leaves are uniform, as warnings; for the others an information.

    `maker` as in `is_meant`.
    """
    by_root: dict[str, list[UnheldLeaf]] = {}
    for leaf in leaves:
        by_root.setdefault(root_of(spoken(leaf.path)), []).append(leaf)
    untrained = {root: of_it for root, of_it in by_root.items() if all(leaf.uniform for leaf in of_it)}
    for root, of_it in untrained.items():
        yield _untrained(record, maker, root, of_it)
    others = [leaf for root, of_it in by_root.items() if root not in untrained for leaf in of_it]
    if others:
        yield _maybe_meant(maker, others)


def _untrained(record: Record, maker: Line | None, root: str, leaves: list[UnheldLeaf]) -> Finding:
    shown = named(leaves)
    one = len(shown) == 1
    why = (
        f"{_held_instead(maker)} What {'it holds' if one else 'each of them holds'} is uniform, so "
        "nothing that was learned before is in it."
    )
    plain = all(spoken(leaf.path) == root for leaf in leaves)
    fix = Fix(
        "new_optimizer",
        f"Give {'it' if one else 'them'} to the optimizer, too.",
        False,
        at(_cause(maker, leaves)),
        edits=added_to(record, maker, root, "{}" if plain else "*{}.parameters()")[1],
    )
    return finding_of(shown, _cause(maker, leaves), why, leaves, fix)


def _held_instead(maker: Line | None) -> str:
    return "A library made the optimizer." if maker is None else f"{short(maker.place.source)} has others."


def _cause(maker: Line | None, leaves: list[UnheldLeaf]) -> Place:
    return leaves[0].place if maker is None else maker.place


def added_to(record: Record, maker: Line | None, path: str, form: str = "{}") -> tuple[str, Edits]:
    """What is put behind the parameters of the line's only optimizer, and the edits; empty: that has no name there.

    `form`: how the optimizer is given what is there: ``*{}.parameters()``.
    """
    given = given_of(maker) if maker is not None else []
    name = named_there(record, maker, path) if maker is not None and given else ""
    if maker is None or not name:
        return "", ()
    text, old, new = maker.run.source, given[0], form.format(name)
    if len(given) > 1 or (isinstance(old, ast.Call) and syntax.last_name(ast.unparse(old.func)) == "named_parameters"):
        return _as_group(maker, f"[{new}]" if form == "{}" else new.removeprefix("*"))
    if isinstance(old, (ast.List, ast.Tuple)):
        if not old.elts or any(isinstance(one, ast.Dict) for one in old.elts):
            return "", ()
        return new, text_edit.insert_behind(maker.run.cell, text, old.elts[-1], f", {new}")
    listed = isinstance(old, ast.Call) and syntax.last_name(ast.unparse(old.func)) in _OF_PARAMETERS
    whole = f"[*{ast.unparse(old)}, {new}]"
    return (whole, text_edit.replace_node(maker.run.cell, text, old, whole)) if listed else ("", ())


def _as_group(maker: Line, params: str) -> tuple[str, Edits]:
    """A group of its own behind those of the line's only optimizer; empty: it has no list of groups there."""
    groups = [one for given in first_arguments(maker) for one in groups_given(maker.run.source, maker.statement, given)]
    new = f'{{"params": {params}}}'
    if not groups or len(first_arguments(maker)) != 1:
        return "", ()
    return new, text_edit.insert_behind(maker.run.cell, maker.run.source, groups[-1], f", {new}")


def _maybe_meant(maker: Line | None, leaves: list[UnheldLeaf]) -> Finding:
    shown = named(leaves)
    they, them = ("it", "it") if len(shown) == 1 else ("they", "them")
    frozen = tuple(f"{whole}.requires_grad_(False)" for whole in unheld_wholes(leaves))
    saves = "saves" if len(frozen) == 1 else "save"
    fix = Fix(
        "new_optimizer",
        f"If {they} should be trained, give {them} to the optimizer, too. If not, {names(frozen, len(frozen))} "
        f"{saves} the work for gradients that nothing uses.",
        False,
        at(_cause(maker, leaves)),
    )
    return replace(finding_of(shown, _cause(maker, leaves), _held_instead(maker), leaves, fix), severity="info")
