"""Parameters of an optimizer to which the graph leads, and for which a custom Function returned None as gradient."""

from __future__ import annotations

from collections.abc import Iterator

from graphwidget.diagnosis.source.pytorch.custom_functions import functions
from graphwidget.diagnosis.wording import at, names, place_of, spoken, where
from graphwidget.model import BackwardCall, Finding, Fix, Record, StarvedParameters

__all__ = ["find"]

MOST_NAMED = 4


def find(record: Record, starved: StarvedParameters) -> Iterator[Finding]:
    """Yield one finding for each Function that gave some of these parameters nothing."""
    known = {made.name: made for made in functions(record)}
    blamed: dict[str, dict[str, None]] = {}
    for call in record.calls if known else ():
        for function, path in _left_out(call, set(starved.paths)):
            if function in known:
                blamed.setdefault(function, {})[spoken(path)] = None
    for function, found in blamed.items():
        made, paths = known[function], tuple(found)
        line = made.returns[0].lineno if len(made.returns) == 1 else made.made.lineno
        place, shown = place_of(made.run, line), names(paths, MOST_NAMED)
        yield Finding(
            "silent",
            "warning",
            f"The optimizer holds {shown}, and in {starved.steps} steps ({where(starved.place) or 'the last one'}) no "
            f"gradient was there. The graph leads there through `{function}` alone, and its `backward` "
            f"({where(place)}) returned None for {'it' if len(paths) == 1 else 'them'}.",
            f"{shown} {'has' if len(paths) == 1 else 'have'} had no gradient in any step of the optimizer.",
            tensor=paths[0],
            made_at=place,
            names=(*paths, function),
            fixes=(
                Fix(
                    "return_all_gradients",
                    f"Let the `backward` of `{function}` return a gradient for it. It returns one for each input of "
                    "`forward`, in their order, and `ctx.needs_input_grad` counts them in the same way.",
                    False,
                    at(place),
                ),
            ),
        )


def _left_out(call: BackwardCall, paths: set[str]) -> Iterator[tuple[str, str]]:
    """The parameters to which only nodes of one Function lead, all of which ran: the Function's name, and the path."""
    graph, ran = call.graph, set(call.executed)
    if graph is None or call.result != "ok":
        return
    wanted = {index: path for index, leaf in graph.leaves.items() for path in leaf.paths if path in paths}
    users: dict[int, set[int]] = {}
    for node in range(len(graph)) if wanted else ():
        for index in wanted.keys() & set(graph.next(node)):
            users.setdefault(index, set()).add(node)
    for index, nodes in users.items():
        makers = {graph.name_of(node).removesuffix("Backward") for node in nodes}
        if len(makers) == 1 and all(graph.uid[node] in ran for node in nodes):
            yield makers.pop(), wanted[index]
