"""Inference mode around a call: nothing is recorded in it, whatever grad mode is."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.origins import Origins
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch import grad_modes
from graphwidget.diagnosis.wording import at, place_of, short, where
from graphwidget.model import BackwardCall, CellRun, Fix, Place

__all__ = ["around_the_call"]


def around_the_call(origins: Origins, call: BackwardCall, name: str) -> Cause | None:
    """Inference mode was measured to be on at the call, and `enable_grad` inside it, or a library, hides that.

    None where a `with` around the call shows it plainly: that is told as any other grad mode.
    """
    scene = origins.values.scene
    if not scene.inference_mode:
        return None
    switch, run, place = _switch(origins)
    asked = f"`with torch.enable_grad()` does not switch it off: `{name}` has no graph."
    if scene.grad_mode is False:
        if switch is not None:
            return None
        asked = f"`{name}` has no graph, and `torch.enable_grad()` would give it none."
    if switch is None or run is None or place is None:
        words = (
            "Compute it under `with torch.inference_mode(False):`, from copies of the tensors that were made outside "
            "of it (`x.clone()`). Or tell the library to use `no_grad`: for Lightning, `Trainer(inference_mode=False)`."
        )
        text = f"Inference mode is on where {short(call.place.source)} runs. Nothing is recorded in it, and {asked}"
        return Cause(text, Fix("remove_no_grad", words, False, at(call.place)), call.place)
    module, _, _ = switch.text.split("(", 1)[0].rpartition(".")
    new = f"{f'{module}.' if module else ''}no_grad()"
    node = next(one for one in grad_modes.expressions(switch.outer) if ast.unparse(one) == switch.text)
    edits = text_edit.replace_node(run.cell, run.source, node, new) if module else ()
    decorates = isinstance(switch.outer, ast.FunctionDef)
    shown = f"`@{switch.text}` of `{switch.outer.name}`" if decorates else f"`with {switch.text}`"  # type: ignore[attr-defined]
    return Cause(
        f"Inference mode is on where {short(call.place.source)} runs: {shown} ({where(place)}) is around it. Nothing "
        f"is recorded in it, and {asked}",
        Fix(
            "remove_no_grad",
            f"Write `{new}` there: inside it, `torch.enable_grad()` works. Or compute under "
            "`with torch.inference_mode(False):`, from copies (`x.clone()`) of the tensors that were made in it.",
            False,
            at(place),
            edits=edits,
        ),
        place,
    )


def _switch(origins: Origins) -> tuple[grad_modes.Switch | None, CellRun | None, Place | None]:
    """The innermost block or decorator in the program that switches inference mode on, around one of the lines."""
    for sight in origins.values.scene.sights:
        run = next((run for run in origins.values.runs if run.run == sight.place.run), None)
        there = source.statements_at(run.source, sight.place.line or 0) if run is not None else []
        switch = grad_modes.by_name(run.source, there[-1], "inference_mode") if run is not None and there else None
        if run is not None and switch is not None:
            return switch, run, place_of(run, switch.outer.lineno)
    return None, None, None
