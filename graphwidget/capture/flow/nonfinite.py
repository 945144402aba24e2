"""Looks for the first value of a graph that is not finite: in what is saved and named, then in a backward.

That backward runs through the engine on request, and changes nothing of the user's: it keeps the graph, returns its
gradients instead of adding them to `.grad`, and the random numbers go on as if it had not been. Whether it may run is
decided before: no code of the user's that could do something else runs in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from graphwidget import torch_internals as ti
from graphwidget.model import Forecast, Node, NodeFacts, NonFinite, Snapshot

__all__ = ["first_nonfinite", "values_there"]


_MODULE_HOOK = "BackwardHookFunction"  # the node around a module with full backward hooks


class _Bad(NamedTuple):
    """The elements of a tensor that are not finite."""

    value: str
    at: tuple[int, ...]
    count: int
    size: int


class _Seen(NamedTuple):
    """A tensor that is not finite: what it is, the node that made it (None: none did), and the one that shows it."""

    bad: _Bad
    what: str
    maker: Any
    shown_by: Any


def first_nonfinite(root: Any, graph: Snapshot, forecast: Forecast, named: Mapping[int, tuple[str, Any]]) -> NonFinite:
    """Return the first value below a root that is not finite.

    Parameters
    ----------
    root
        Where the backward would begin.
    graph
        The snapshot of its graph.
    forecast
        Of a backward of it that retains the graph.
    named
        `id` -> (path, tensor), of the user's tensors.
    """
    index = _Index(graph)
    nodes = _below(root)
    seen = min(_forward(root, nodes, named), key=lambda one: _order(one, index), default=None)
    if seen is not None:
        shown = index.node(seen.maker) or index.node(seen.shown_by)
        return NonFinite(
            "forward",
            seen.bad.value,
            seen.what,
            index.node(seen.maker),
            shown.place if shown is not None else None,
            *seen.bad[1:],
            because=("No operation made it: it was given.",) if seen.maker is None else (),
        )
    refusal = _refusal(graph, forecast)
    if refusal:
        return NonFinite(unseen=(f"The gradients were not looked at: {refusal}",))
    return _backward(root, nodes, index)


class _Index:
    """Live nodes as nodes of a snapshot: by number and name, where these are of one node only."""

    def __init__(self, graph: Snapshot) -> None:
        self.graph = graph
        self._of: dict[tuple[int, str], int] = {}
        for at, seq in enumerate(graph.seq):
            key = (seq, graph.name_of(at))
            self._of[key] = at if key not in self._of and seq >= 0 else -1

    def node(self, live: Any) -> Node | None:
        if live is None:
            return None
        at = self._of.get((ti.number_of(live), ti.name_of(live)), -1)
        return self.graph.node(at) if at >= 0 else None


def _below(root: Any) -> list[Any]:
    node = ti.history(root, asked=True)[0]
    found, work = dict.fromkeys([node] if node is not None else []), [node] if node is not None else []
    while work:
        for following, _ in work.pop().next_functions:
            if following is not None and following not in found:
                found[following] = None
                work.append(following)
    return list(found)


# ------------------------------------------------------------------ the forward


def _order(seen: _Seen, index: _Index) -> tuple[int, int]:
    """What was given comes first, then the values in the order in which they were made. Names before saved tensors."""
    if seen.maker is None:
        return (-1, 0)
    number = ti.number_of(seen.maker)
    return (number if number != ti.NO_SEQUENCE else -1, not seen.what.startswith("`"))


def _forward(root: Any, nodes: list[Any], named: Mapping[int, tuple[str, Any]]) -> Iterator[_Seen]:
    """Yield everything that is not finite: leaves, named tensors, saved tensors, the root itself."""
    inside = set(nodes)
    leaves = {id(leaf) for node in nodes if (leaf := ti.accumulated_variable(node)) is not None}
    for key, (path, tensor) in named.items():
        if not ti.requires_grad(tensor) or ti.maybe_stale_view(tensor):
            continue
        maker = ti.grad_fn(tensor)
        bad = _bad(tensor) if key in leaves or maker in inside else None
        if bad is not None:
            yield _Seen(bad, f"`{path}`", maker, maker)
    for node in nodes:
        leaf = ti.accumulated_variable(node)
        if leaf is not None:
            bad = _bad(leaf) if id(leaf) not in named else None
            if bad is not None:
                yield _Seen(bad, "a leaf without a name", None, None)
            continue
        for shown, tensor in _held(node):
            bad = _bad(tensor)
            if bad is not None:
                result = ti.is_output_slot(shown)
                maker = node if result else None if ti.maybe_stale_view(tensor) else _maker(node, shown)
                path = named[id(tensor)][0] if id(tensor) in named else ""
                saved = f"what it saved as `{shown}`," if result else f"what {ti.name_of(node)} saved as `{shown}`,"
                what = f"`{path}`" if path else saved
                yield _Seen(bad, what, maker, node)
    bad = _bad(root)
    if bad is not None:
        maker = ti.history(root, asked=True)[0]
        yield _Seen(bad, "the root", maker, maker)


def _held(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the saved tensors of a node that are there as they are. Nothing is unpacked that a hook has packed."""
    for shown, read in ti.slot_readers(type(node)):
        try:
            slots = read(node)
        except (RuntimeError, AttributeError):  # released, or not to be read
            continue
        several = isinstance(slots, (tuple, list))
        for at, slot in enumerate(slots if several else (slots,)):
            if slot is None or ti.hook_of_slot(slot) is not None:
                continue
            tensor = ti.data_of_slot(slot)
            if ti.is_tensor(tensor):
                yield (f"{shown}[{at}]" if several else shown), tensor


def _maker(node: Any, shown: str) -> Any:
    """The node that made what another saved; None: it is a leaf, a constant, or unknown."""
    try:
        tensor = ti.slot_of(node, shown).unpack()
    except (RuntimeError, AttributeError):
        return None
    return ti.grad_fn(tensor) if ti.is_tensor(tensor) else None


def _bad(tensor: Any) -> _Bad | None:
    """The elements that are not finite; None: there are none, or it cannot be looked at (sparse, without memory)."""
    if not ti.has_plain_values(tensor):
        return None
    with torch.no_grad(), ti.quiet():
        bad = torch.isfinite(tensor.detach()).logical_not()
        count = int(bad.sum())
        if not count:
            return None
        first = int(bad.flatten().to(torch.uint8).argmax())
        at = tuple(int(one) for one in torch.unravel_index(torch.tensor(first), bad.shape)) if bad.dim() else ()
        element = tensor.detach().flatten()[first].item()
    value = "nan" if element != element else "-inf" if not isinstance(element, complex) and element < 0 else "inf"
    return _Bad(value, at, count, bad.numel())


# ------------------------------------------------------------------ the backward


def _refusal(graph: Snapshot, forecast: Forecast) -> str:
    """Why no backward runs on request; empty: it may."""
    if forecast.ok is False:
        return f"a backward would raise ({forecast.word})."
    if forecast.ok is None:
        return f"what a backward does cannot be foreseen. {forecast.why}".rstrip()
    facts = [graph.facts.get(at, NodeFacts()) for at in range(len(graph))]
    hooked = any(graph.name_of(at).startswith(_MODULE_HOOK) for at in range(len(graph)))
    if hooked or any(one.hooks for one in facts):
        return "hooks of yours would run."
    if any(one.non_reentrant_checkpoint or one.reentrant_checkpoint for one in facts):
        return "a checkpoint would run its function again."
    return ""


def _backward(root: Any, nodes: list[Any], index: _Index) -> NonFinite:
    """Run a backward that only returns gradients, and stop to look at the first that is not finite."""
    leaves = [leaf for node in nodes if (leaf := ti.accumulated_variable(node)) is not None]
    leaves = list({id(leaf): leaf for leaf in leaves}.values())
    if any(ti.hooks_of(leaf) for leaf in leaves):
        return NonFinite(unseen=("The gradients were not looked at: hooks of yours would run.",))
    found: list[tuple[Any, _Bad, int]] = []

    def watch(node: Any) -> Any:
        def look(returned: Any, arrived: Any) -> None:
            if found or any(one is not None and _bad(one) is not None for one in arrived):
                return
            for nr, one in enumerate(returned):
                bad = _bad(one) if one is not None else None
                if bad is not None:
                    found.append((node, bad, nr))
                    return

        return node.register_hook(look)

    handles = [watch(node) for node in nodes if ti.accumulated_variable(node) is None]
    try:
        with _same_random_numbers():
            ti.gradients_unseen(root, torch.ones_like(root.detach()), leaves)
    finally:
        for handle in handles:
            handle.remove()
    if not found:
        return NonFinite()
    node, bad, nr = found[0]
    shown = index.node(node)
    held = _values_at(node, bad)
    return NonFinite(
        "backward",
        bad.value,
        f"gradient {nr + 1} that comes out",
        shown,
        shown.place if shown is not None else None,
        *bad[1:],
        because=("All gradients that went in are finite.", *([f"There it had saved {held}."] if held else [])),
    )


def values_there(node: Any, gradient: Any) -> str:
    """What a node saved where its gradient is not finite: ```self` 0``; empty: nothing of that form, or it is."""
    bad = _bad(gradient)
    return _values_at(node, bad) if bad is not None else ""


def _values_at(node: Any, bad: _Bad) -> str:
    known = []
    for shown, tensor in _held(node):
        if ti.has_plain_values(tensor) and len(ti.shape_of(tensor)) == len(bad.at) and ti.count_of(tensor) == bad.size:
            with torch.no_grad(), ti.quiet():
                known.append(f"`{shown}` {tensor.detach()[bad.at].item():.4g}")
    return ", ".join(known)


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """The random numbers go on as if nothing had been drawn in between."""
    before = torch.get_rng_state()
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_available() and torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        torch.set_rng_state(before)
        if devices is not None:
            torch.cuda.set_rng_state_all(devices)
