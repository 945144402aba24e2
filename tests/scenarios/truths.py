"""The programs and their measured facts: ``programs/<theme>/<name>.py`` and ``programs/<theme>/measured.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Scenario:
    """A program, its facts measured in plain torch, and a corrected version if there is one."""

    theme: str
    name: str
    truth: dict

    @property
    def path(self) -> Path:
        return PROGRAMS / self.theme / f"{self.name}.py"

    @property
    def corrected(self) -> Path | None:
        return self.path.with_suffix(".fixed.py") if self.truth["fixed"] else None


def scenarios() -> dict[str, Scenario]:
    """Return all scenarios by name. A name occurs in one theme only."""
    found: dict[str, Scenario] = {}
    for file in sorted(PROGRAMS.glob("*/measured.json")):
        for name, truth in json.loads(file.read_text(encoding="utf-8")).items():
            if name in found:
                raise ValueError(f"{name} stands in {found[name].theme} and in {file.parent.name}")
            found[name] = Scenario(file.parent.name, name, truth)
    return found
