"""What the findings about leaves that no optimizer holds share: lines of the text, paths, and words."""

from __future__ import annotations

import ast
import os.path
import re
from collections.abc import Iterable
from typing import NamedTuple

from graphwidget.diagnosis.source import syntax
from graphwidget.diagnosis.wording import names, place_of, short, spoken, where
from graphwidget.model import CellRun, Finding, Fix, Place, Record, UnheldLeaf

__all__ = ["Line", "around", "classes_in", "finding_of", "named", "parts_of", "torch_nn", "unheld_wholes"]

MOST_NAMED = 4


class Line(NamedTuple):
    """A statement in the text of a cell."""

    run: CellRun
    statement: ast.stmt

    @property
    def place(self) -> Place:
        return place_of(self.run, self.statement.lineno)

    @property
    def shown(self) -> str:
        return f"{short(ast.unparse(self.statement).split(chr(10), 1)[0])} ({where(self.place)})"


def parts_of(path: str) -> list[str]:
    return re.findall(r"[A-Za-z_]\w*|\[[^\]]*\]", spoken(path))


def named(leaves: list[UnheldLeaf]) -> tuple[str, ...]:
    found = dict.fromkeys(spoken(leaf.path) for leaf in leaves)
    return tuple(sorted(found, key=lambda path: (not path.endswith("weight"), path)))


def around(paths: Iterable[str]) -> str:
    """The innermost object around all leaves; empty if that is none whose parameters these are."""
    inside = [f"{spoken(path).rpartition('.')[0] or spoken(path)}." for path in paths]
    common = os.path.commonprefix(inside)
    cut = max(common.rfind("."), common.rfind("["))
    whole = common[:cut] if cut > 0 else ""
    return "" if whole in ("self", "cls") else whole


def unheld_wholes(leaves: Iterable[UnheldLeaf]) -> tuple[str, ...]:
    """The outermost objects around all leaves of which no optimizer holds anything; where there is none, the leaf."""
    found = dict.fromkeys(map(_unheld_whole, leaves))
    return tuple(one for one in found if not any(one.startswith((f"{two}.", f"{two}[")) for two in found))


def _unheld_whole(leaf: UnheldLeaf) -> str:
    parts = parts_of(leaf.path)
    bare = [part.strip("[]'\"") for part in parts]
    first = 2 if bare[0] in ("self", "cls") else 1  # what a variable of a method holds has no name outside
    fit = [len(one.split(".")) for one in leaf.inside if bare[first:][-len(one.split(".")) :] == one.split(".")]
    whole = parts[: len(parts) - max(fit, default=0)]
    return "".join(part if part.startswith("[") else f".{part}" for part in whole).removeprefix(".")


def classes_in(run: CellRun) -> list[ast.ClassDef]:
    tree = syntax.parse(run.source)
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)] if tree is not None else []


def torch_nn(record: Record, run: CellRun | None) -> str:
    """How a text writes `torch.nn`: a file by its own imports, a cell by those of all cells."""
    imports = r"^\s*(?:from torch import (?:.*, *)?nn\b|import torch\.nn as nn\b)"
    alone = run is not None and run.file is not None
    texts = [run.source] if run is not None and alone else [one.source for one in record.runs.values()]
    return "nn" if any(re.search(imports, text, re.M) for text in texts) else "torch.nn"


def finding_of(shown: tuple[str, ...], cause: Place, why: str, leaves: list[UnheldLeaf], fix: Fix) -> Finding:
    one = len(shown) == 1
    listed, step = names(shown, MOST_NAMED), where(leaves[0].place)
    at_step, them = f" ({step})" if step else "", "it" if one else "them"
    by_hand = all(leaf.by_hand for leaf in leaves)
    nothing = f"the step by hand{at_step} writes to others" if by_hand else f"no optimizer that makes a step{at_step} "
    nothing += "" if by_hand else f"holds {them}"
    reason = f"no step writes to {them}" if by_hand else f"no optimizer holds {them}"
    return Finding(
        "silent",
        "warning",
        f"Backward gives {listed} {'a gradient' if one else 'gradients'}, and {nothing}. {why}",
        f"{listed} {'is' if one else 'are'} never trained: {reason}.",
        tensor=shown[0],
        made_at=cause,
        names=shown,
        fixes=(fix,),
    )
