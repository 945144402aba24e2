"""Hooks for saved tensors that give back something else than what was saved: another type, shape or device.

What hooks give back is known where the program has run once more, with its hooks watched. Before that, what a node
with packed tensors was given is not known, and nothing is said of its types.
"""

from __future__ import annotations

import re

from graphwidget.diagnosis.findings.failed_node import nodes_stopped_at
from graphwidget.diagnosis.findings.refusals.user_code.pair_edits import given_back
from graphwidget.diagnosis.no_graph.measured import place_at, run_of
from graphwidget.diagnosis.wording import at, place_of, root_name, short, where
from graphwidget.model import (
    BackwardCall,
    Finding,
    Fix,
    MeasuredUnpacked,
    Place,
    Record,
    Scene,
    SlotState,
    TensorForm,
    TextLine,
    torch_messages,
)

__all__ = ["gave_back_as_saved", "may_be_there", "of_call", "of_unmeasured"]

# What a message speaks of, where a tensor differs in this.
_ABOUT = {
    "type": re.compile(r"d?type|scalar"),
    "shape": re.compile(r"size|shape|dimension|\bdim\b|matrix|matrices|numel|elements"),
    "device": re.compile(r"device"),
}


def may_be_there(record: Record) -> bool:
    """Whether another run may tell that hooks explain the error of a call: it is about a tensor's type, or the like."""
    return any(_may_be_theirs(record, call) for call in record.calls)


def gave_back_as_saved(record: Record, call: BackwardCall) -> bool:
    """Whether hooks were measured to give back to the last node of a call what it had saved."""
    one = _measured(record, call)
    return one is not None and one.given == one.returned


def of_call(record: Record, call: BackwardCall, *, caught: bool) -> Finding | None:
    """A call in which a node was given back something else than it had saved, and could not use it."""
    one = _measured(record, call)
    if one is None or one.given == one.returned or not _may_be_theirs(record, call):
        return None
    differs = _differs(one)
    graph, nodes = call.graph, nodes_stopped_at(call)
    known = [node for node in nodes if graph is not None and graph.name_of(node) == one.node]
    if not any(_is_about(call.error or "", what) for what in differs) or (nodes and not known):
        return None
    node = known[0] if len(known) == 1 else None
    pack, unpack = _place(record, one.pack), _place(record, one.unpack)
    made = place_at(record, one.lines)
    packer, unpacker = _spoken(one.pack_name, "pack"), _spoken(one.unpack_name, "unpack")
    cause = unpack or pack or made
    saved = f" (saved at {where(graph.place_of(node))})" if graph is not None and node is not None else ""
    registered = f" {short(made.source)} ({where(made)}) made the two hooks." if made is not None else ""
    return Finding(
        "refused",
        "info" if caught else "error",
        f"{short(call.place.source or root_name(call))} ({where(call.place)}) ran `{one.node}`{saved}, which asked for "
        f"what it had saved. {_upper(unpacker)}{_at(unpack)} gave back {_described(one.returned, one.given)} for "
        f"{_described(one.given, one.returned)} that {packer}{_at(pack)} had been given. PyTorch takes what comes back "
        f"for what was saved.{registered}{' The program has caught the error.' * caught}",
        f"{_upper(unpacker)} does not give back "
        f"{'a tensor' if one.returned.other else f'the {differs[0]} of what was saved'}.",
        call.n,
        node=one.node,
        node_uid=graph.uid[node] if graph is not None and node is not None else None,
        made_at=cause,
        failed_at=call.place,
        cause=cause,
        names=tuple(filter(None, (one.pack_name, one.unpack_name))),
        fixes=(_fix(record, one, differs, cause),),
    )


def of_unmeasured(record: Record, call: BackwardCall, *, caught: bool) -> Finding | None:
    """The same where it is not known what the hooks gave back."""
    if not _may_be_theirs(record, call) or _measured(record, call) is not None:
        return None
    graph, nodes = call.graph, nodes_stopped_at(call)
    one = nodes[0] if graph is not None and len(nodes) == 1 else None
    what = f"`{graph.name_of(one)}`" if graph is not None and one is not None else "the node at which it stopped"
    place = graph.place_of(one) if graph is not None and one is not None else None
    first = next(iter((call.error or "").strip().splitlines()), "").rstrip(".")
    return Finding(
        "refused",
        "info" if caught else "error",
        f"{short(call.place.source or root_name(call))} ({where(call.place)}) raised {call.error_type}: {first}. "
        f"What {what}{_at(place)} had saved was behind hooks for saved tensors. Hooks are not run to look at them, so "
        f"it is not known whether they gave it back as it was.{' The program has caught the error.' * caught}",
        "A node could not use what hooks for saved tensors gave back, or what it was given.",
        call.n,
        node=graph.name_of(one) if graph is not None and one is not None else "",
        node_uid=graph.uid[one] if graph is not None and one is not None else None,
        made_at=place,
        failed_at=call.place,
        names=("saved_tensors_hooks",),
        fixes=(
            Fix(
                "give_back_as_saved",
                "Compare what the unpack hook returns with what the pack hook was given: type, shape and device have "
                "to be the same.",
            ),
        ),
    )


def _may_be_theirs(record: Record, call: BackwardCall) -> bool:
    """Whether a call failed on a tensor that a node with packed tensors was given."""
    message = call.error or ""
    if call.result != "raised" or record.scenes.get(call.n, Scene()).raised_in == "call" or call.graph is None:
        return False
    if torch_messages.says(message, torch_messages.UNPACKED_NO_TENSOR):
        return True
    others = (words for reason, words in torch_messages.AUTOGRAD_CALL if reason != "types")
    if any(torch_messages.says(message, words) for words in others) or not any(
        _is_about(message, what) for what in _ABOUT
    ):
        return False
    nodes = nodes_stopped_at(call) or range(len(call.graph))
    states = call.graph.slot_state
    return any(states[slot] == SlotState.PACKED for node in nodes for slot in call.graph.slots_of(node))


def _is_about(message: str, what: str) -> bool:
    if what == "kind":
        return torch_messages.says(message, torch_messages.UNPACKED_NO_TENSOR)
    return _ABOUT[what].search(message) is not None


def _measured(record: Record, call: BackwardCall) -> MeasuredUnpacked | None:
    known = record.lineage.unpacked if record.lineage is not None else ()
    return next((one for one in known if one.call == call.n), None)


def _differs(one: MeasuredUnpacked) -> list[str]:
    """In what a tensor that came back differs: ``["type"]``."""
    if one.returned.other:
        return ["kind"]
    pairs = {
        "type": (one.given.dtype, one.returned.dtype),
        "shape": (one.given.shape, one.returned.shape),
        "device": (one.given.device, one.returned.device),
    }
    return [what for what, (given, returned) in pairs.items() if given != returned]


def _fix(record: Record, one: MeasuredUnpacked, differs: list[str], cause: Place | None) -> Fix:
    pack, unpack = _spoken(one.pack_name, "pack"), _spoken(one.unpack_name, "unpack")
    ways = {
        "type": f"Let {pack} return the type beside the tensor, and {unpack} convert it back: `.to(dtype)`.",
        "shape": f"Let {pack} return beside the tensor what it changed of its shape, and {unpack} undo that.",
        "device": f"Let {pack} return the device beside the tensor, and {unpack} move it back: `.to(device)`.",
        "kind": f"Let {unpack} return the tensor that {pack} was given, or an equal one.",
    }
    if "int" in one.returned.dtype and "int" not in one.given.dtype:
        ways["type"] = f"Let {unpack} convert it back, and undo what {pack} did to the numbers, as scaling them."
    edits = given_back(record, one, differs[0]) if len(differs) == 1 else ()
    return Fix("give_back_as_saved", " ".join(ways[what] for what in differs), False, at(cause), edits=edits)


def _described(form: TensorForm, other: TensorForm) -> str:
    """A tensor by what tells it from another: ``a float32 tensor of shape (20, 32)``."""
    if form.other:
        return "None" if form.other == "NoneType" else f"something of type `{form.other}`"
    device = f" on {form.device}" if form.device != other.device and other.device else ""
    return f"{'an' if form.dtype.startswith('int') else 'a'} {form.dtype} tensor of shape {form.shape}{device}"


def _spoken(name: str, role: str) -> str:
    return f"`{name}`" if name else f"the {role} hook"


def _upper(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _place(record: Record, line: TextLine | None) -> Place | None:
    run = run_of(record, line) if line is not None else None
    return place_of(run, line.line) if run is not None and line is not None else None


def _at(place: Place | None) -> str:
    return f" ({where(place)})" if where(place) else ""
