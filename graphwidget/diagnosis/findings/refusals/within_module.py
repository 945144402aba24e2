"""The module of a library in which a line of the program was refused: the line itself may name only what holds it."""

from __future__ import annotations

from dataclasses import replace

from graphwidget.diagnosis.findings.failure import Failure
from graphwidget.diagnosis.wording import names, short
from graphwidget.model import Finding, RunningModule

__all__ = ["named", "with_module"]


def named(module: RunningModule) -> str:
    """A module by its path and its class, as a sentence begins with it: ``\\`net[1]\\` (a \\`BatchNorm1d\\`)``."""
    kind = f"{'an' if module.class_name[:1] in 'AEIOU' else 'a'} `{module.class_name}`"
    return f"`{module.path}` ({kind})" if module.path else f"{kind[0].upper()}{kind[1:]}"


def with_module(finding: Finding, failure: Failure) -> Finding:
    """The finding of a line's error with the module that raised it, and what that was running."""
    module = failure.run.scene.within
    if module is None:
        return finding
    shown = named(module)
    shown = shown if module.path else f"{shown[0].lower()}{shown[1:]}"
    doing = f", by {short(module.statement)}" if module.statement else ""
    if doing and module.buffers:
        doing += f", which reads or writes its {'buffer' if len(module.buffers) == 1 else 'buffers'} "
        doing += names(module.buffers)
    given = tuple(f"{module.path}.{one}" if module.path else one for one in module.buffers)
    found = (module.path, module.class_name, *given)
    return replace(
        finding,
        text=f"{finding.text} The error was raised in {shown}{doing}.",
        names=tuple(dict.fromkeys((*finding.names, *filter(None, found)))),
    )
