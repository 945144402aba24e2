"""The graph in a message: columns of nodes, edges and slots, and the tables that they point to."""

from __future__ import annotations

from itertools import compress, groupby
from typing import Any

from graphwidget.model import Place, SlotState, Snapshot, type_text
from graphwidget.render.wire.columns import Numbered, Strings, column, in_state, looked_up, small
from graphwidget.render.words import callers_text, op_name

__all__ = ["freed_by", "graph", "leaves"]


def graph(snapshot: Snapshot, strings: Strings) -> dict[str, Any]:
    names = strings.many(map(op_name, snapshot.names))
    slot_names = strings.many(snapshot.slot_names)
    modules, storages = snapshot.modules, snapshot.storages
    return {
        "n": len(snapshot),
        "uid": column(snapshot.uid),
        "name": column(looked_up(names, snapshot.name)),
        "seq": column(snapshot.seq),
        "kind": small(snapshot.kind),
        "ghost": small(snapshot.ghost) if any(snapshot.ghost) else "",
        **_places(snapshot, strings),
        "module": column(snapshot.module),
        "modulePath": column([strings(module.path) for module in modules]),
        "moduleClass": column([strings(module.class_name) for module in modules]),
        "moduleCall": column([module.call for module in modules]),
        # Edges and slots of a node end where those of the next begin.
        "edgeEnd": column(snapshot.edge_start[1:]),
        "edgeTo": column(snapshot.edge_to),
        "slotEnd": column(snapshot.slot_start[1:]),
        "slotName": column(looked_up(slot_names, snapshot.slot_name)),
        "slotState": small(snapshot.slot_state),
        "slotType": column(_slot_types(snapshot, strings)),
        "slotBytes": column(snapshot.slot_bytes),
        "slotStorage": column(snapshot.slot_storage),
        **freed_by(snapshot),
        "storageBytes": column(storages.bytes),
        "storageOwners": [[i, strings.many(paths)] for i, paths in sorted(storages.owners.items())],
        "leaves": leaves(snapshot, strings),
        "owners": [[o.node, o.output_nr, strings(o.path), strings(o.kind)] for o in snapshot.shown_owners],
        "notes": strings.many(snapshot.notes),
    }


def _slot_types(snapshot: Snapshot, strings: Strings) -> list[int]:
    def name(dtype: int, shape: int) -> int:
        known = snapshot.dtypes[dtype] if dtype >= 0 else None
        text = type_text(known, snapshot.shapes[shape] if shape >= 0 else None)
        return strings(text) if text else -1

    pairs = Numbered[tuple[int, int]]()
    column = pairs.many(zip(snapshot.slot_dtype, snapshot.slot_shape))
    return looked_up([name(*pair) for pair in pairs], column)


def _places(snapshot: Snapshot, strings: Strings) -> dict[str, Any]:
    """The places in the code once each; per node its place, and the iteration: a long loop has few lines."""
    known = Numbered[tuple[int | None, ...]]()
    # The last of each table is for the nodes of unknown place.
    place = [*known.many(_row(one, strings) for one in snapshot.places), -1]
    iteration = [*(-1 if p.iteration is None else p.iteration for p in snapshot.places), -1]
    return {
        "place": column(looked_up(place, snapshot.place)),
        "iteration": column(looked_up(iteration, snapshot.place)),
        "places": list(map(list, known)),
    }


def _row(place: Place, strings: Strings) -> tuple[int | None, ...]:
    """A line of the code, without the iteration."""
    return (
        *(place.cell, place.line, strings(place.source)),
        *(place.outer_cell, place.outer_line, strings(place.outer_source), strings.known(place.cell_id), place.run),
        *map(strings.known, (place.file, place.outer_file, place.function)),
        *(place.inner_run, strings(callers_text(place))),
    )


def leaves(snapshot: Snapshot, strings: Strings) -> list[list[Any]]:
    return [
        [node, strings.many(leaf.paths), strings(type_text(leaf.dtype, leaf.shape)), leaf.has_grad, leaf.bytes]
        for node, leaf in snapshot.leaves.items()
    ]


def freed_by(snapshot: Snapshot) -> dict[str, str]:
    """The calls that freed the freed slots, in the order of slots, each with the length of its run of slots."""
    freed = compress(snapshot.slot_freed_by, snapshot.slot_state.translate(in_state(SlotState.FREED)))
    runs = [(call, len(list(run))) for call, run in groupby(freed)]
    return {"freedBy": column([call for call, _ in runs]), "freedCount": column([count for _, count in runs])}
