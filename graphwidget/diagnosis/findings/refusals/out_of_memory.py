"""A call for which there was no memory: what the graphs held, and whether graphs of earlier iterations pile up."""

from __future__ import annotations

from graphwidget.diagnosis.findings import leak
from graphwidget.diagnosis.wording import names, opening, root_name, short, spoken, when
from graphwidget.model import BackwardCall, Finding, Fix, Record, bytes_text

__all__ = ["of_call"]


def of_call(record: Record, call: BackwardCall) -> Finding:
    """Return the finding of a call that ran out of memory, on any device."""
    held = call.graph.held_bytes() if call.graph is not None else 0
    kept = tuple(dict.fromkeys(path for found in leak.find(record) for path in found.carriers))
    line = f"{short(call.place.source or root_name(call))} ({when(record, call.place)})"
    text = f"{line} asked for memory, and none was left."
    if held:
        text += f" The graphs known before it held {bytes_text(held)} of saved tensors."
    if kept:
        text += f" Graphs of earlier passes stay in {names(tuple(map(spoken, kept)))}: let go of them first."
    fixes = () if kept else (Fix("save_less", _SAVE_LESS, False, price="Checkpoints compute a part twice."),)
    return Finding(
        "refused",
        "error",
        text,
        f"{opening(call.n)} ran out of memory.",
        call.n,
        made_at=call.place,
        failed_at=call.place,
        carriers=kept,
        bytes=held,
        fixes=fixes,
    )


_SAVE_LESS = (
    "Let one graph save less: a smaller batch, fewer passes in one graph, or `torch.utils.checkpoint` around its large "
    "modules."
)
