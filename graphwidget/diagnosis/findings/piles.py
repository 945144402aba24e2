"""Graphs that pile up: what one holder keeps of more and more iterations.

A pile is measured by what a holder reaches: nodes made in three or more iterations of a line that calls backward. It
makes no difference whether those calls ran them, or what holds them: a list, a running total, an average, a buffer, a
closure. Graphs kept on purpose are no pile: one later call runs all of them, or the holder drops the oldest.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from graphwidget.diagnosis.fixes.piles import holders
from graphwidget.diagnosis.fixes.piles.carried import carried_names
from graphwidget.diagnosis.reuse.passes.loops import ENOUGH, MANY, Line, iterations_below, lines_of
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.source.syntax import last_name
from graphwidget.diagnosis.wording import names, short, source_line, spoken, where
from graphwidget.engine.what_if import bytes_held, reachable
from graphwidget.model import Finding, Kind, Look, Owner, Place, Record, SlotState, Snapshot, bytes_text, is_notebooks

MOST = 40  # holders examined one by one: each costs a walk over the graph


@dataclass(frozen=True)
class Pile:
    """What one holder keeps.

    `paths`: the names of the holder, or of the tensors where each of them is a chain of its own. `alone`: without it
    the graphs would be freed. `chain`: one tensor leads to all of it.
    """

    graph: Snapshot
    line: Line
    paths: tuple[str, ...]
    owners: tuple[Owner, ...]
    inside: frozenset[int]
    iterations: frozenset[int]
    chain: bool
    alone: bool = True

    @property
    def name(self) -> str:
        return self.paths[0]


def find(record: Record) -> Iterator[Finding]:
    """Findings for what piles up in variables now, and for what piled up in functions that have returned since."""
    reported: set[str | int] = set()
    lasting: set[int] = set()  # uids of what is kept between the passes, and after them
    found = []
    for pile in _of_one_class(_piles(record, record.snapshot)):
        reported |= _known_by(pile)
        lasting |= {pile.graph.uid[index] for index in pile.inside}
        found.append(_finding(record, pile, None))
    yield from holders.with_neighbours(record, found)
    failed = _nodes_that_a_call_failed_to_run(record)
    gone = []
    for look in _last_looks(record):
        for pile in _piles(record, look.graph, frames_only=True):
            known = reported | failed
            new = known.isdisjoint(_known_by(pile)) and not _is_run_later(record, look, pile)
            if new and _of_its_own(pile, lasting) and _got_more(record, look, pile):
                reported |= _known_by(pile)
                gone.append(_finding(record, pile, look))
    yield from holders.with_neighbours(record, gone)


def _of_one_class(piles: Iterable[Pile]) -> Iterator[Pile]:
    """Piles, where those of several objects of one class that no variable leads to are one."""
    groups: dict[object, list[Pile]] = defaultdict(list)
    for pile in piles:
        groups[pile.paths if pile.owners[0].anchor else id(pile)].append(pile)
    for one, *more in groups.values():
        both = [one, *more]
        owners = tuple(owner for pile in both for owner in pile.owners)
        inside, iterations = (frozenset().union(*sets) for sets in zip(*((p.inside, p.iterations) for p in both)))
        yield replace(one, owners=owners, inside=inside, iterations=iterations, alone=all(p.alone for p in both))


def _nodes_that_a_call_failed_to_run(record: Record) -> set[str | int]:
    """What a call that raised was made for: it would have run and let go of it, and its error is told."""
    return {
        call.graph.uid[index]
        for call in record.calls
        if call.result == "raised" and call.graph is not None
        for index in reachable(call.graph, (root.node for root in call.roots if root.node >= 0))
        if call.graph.kind[index] != Kind.ACCUMULATE
    }


def _known_by(pile: Pile) -> set[str | int]:
    """The names of what keeps a pile, and the nodes that it keeps: a function may have had another name for it."""
    return {*map(local, pile.paths), *(pile.graph.uid[owner.node] for owner in pile.owners)}


def _of_its_own(pile: Pile, lasting: set[int]) -> bool:
    """Whether a holder in a function keeps iterations that no lasting holder keeps: else it only reads from that."""
    graph = pile.graph
    own = (pile.line.iteration(graph, index) for index in pile.inside if graph.uid[index] not in lasting)
    return len({at for at in own if at is not None}) >= ENOUGH


def _got_more(record: Record, look: Look, pile: Pile) -> bool:
    """Whether a holder in a function reached fewer iterations when it was seen before, as far as it was.

    A batch of stored values leads to as many each time it is made: that does not grow.
    """
    now = len(_iterations(pile.graph, pile.line, pile.inside))
    before = []
    for one in record.looks:
        held = [owner.node for owner in one.graph.owners if owner.path in pile.paths] if one.call < look.call else []
        if held:
            before.append(len(_iterations(one.graph, pile.line, reachable(one.graph, held))))
    return not before or min(before) < now


def _is_run_later(record: Record, look: Look, pile: Pile) -> bool:
    """Whether a later call of another line ran nodes of several iterations: it is why the function let it grow.

    A solver keeps the graph of its steps for one backward. What it tried beyond the last step that call does not run.
    """
    made = {i: at for i in pile.inside if (at := pile.line.iteration(pile.graph, i)) is not None}
    ran = _run_by_a_loop_around(record, pile.graph, pile.line, made, look.call)
    return len({made[i] for i in ran}) >= ENOUGH


def _iterations(graph: Snapshot, line: Line, inside: Iterable[int]) -> set[int]:
    return {at for index in inside if (at := line.iteration(graph, index)) is not None}


def _last_looks(record: Record) -> list[Look]:
    """For each line of backward calls the last look at the memory that it keeps, the newest line first."""
    return sorted((looks[-1] for looks in _looks_of_lines(record)), key=lambda look: -look.call)


def _looks_of_lines(record: Record) -> list[list[Look]]:
    """The looks at each line of backward calls."""
    found: dict[object, list[Look]] = defaultdict(list)
    for look in record.looks:
        call = next((call for call in record.calls if call.n == look.call), None)
        if call is not None:
            found[source_line(call.place)].append(look)
    return list(found.values())


def _piles(record: Record, graph: Snapshot, frames_only: bool = False) -> Iterator[Pile]:
    """The piles of a graph. Of two on one chain only the one on which the other builds."""
    lines = lines_of(record)
    owners = [o for o in graph.owners if not is_notebooks(o.kind, o.path) and graph.kind[o.node] != Kind.ACCUMULATE]
    if not lines or not owners:
        return
    everything = reachable(graph, (owner.node for owner in owners))
    seqs = sorted(graph.seq[i] for i in everything if graph.seq[i] >= 0)
    counted = sorted(((line.periods(seqs), at) for at, line in enumerate(lines)), reverse=True)
    reported: set[int] = set()
    for periods, at in counted:
        if periods < ENOUGH:
            return
        for pile in _of_line(record, graph, lines[at], owners, everything, reported):
            if not frames_only or pile.owners[0].kind == "frame":
                yield pile


def _of_line(
    record: Record, graph: Snapshot, line: Line, owners: list[Owner], everything: set[int], reported: set[int]
) -> Iterator[Pile]:
    below = iterations_below(graph, line, everything, ENOUGH)
    chains = [owner for owner in owners if len(below[owner.node]) >= ENOUGH]
    others = [owner for owner in owners if 0 < len(below[owner.node]) < ENOUGH and not owner.bounded]
    found = []
    for chain, groups in ((True, _chains(graph, chains)), (False, _containers(others, below))):
        for paths, held in groups:
            found.append((chain, paths, held, reachable(graph, (owner.node for owner in held))))
    carried = carried_names(record)
    found.sort(key=lambda one: (one[0] and not carried.intersection(map(_last_name, one[1])), len(one[3])))
    for chain, paths, held, inside in found[:MOST]:
        left = inside - reported
        made = {i: at for i in left if (at := line.iteration(graph, i)) is not None}
        if len(set(made.values())) < ENOUGH or not (chain or _grows(record, graph, paths[0], held)):
            continue
        if line.open and not (chain and _is_beside_the_losses(graph, line, held, made)):
            continue
        iterations = frozenset(made.values()) if line.open else _of_no_use(record, graph, line, made)
        if len(iterations) >= ENOUGH:
            reported |= inside
            mine = {id(owner) for owner in held}
            rest = reachable(graph, (owner.node for owner in owners if id(owner) not in mine))
            elsewhere = {at for i, at in made.items() if i in rest}
            alone = len(elsewhere) < ENOUGH
            yield Pile(graph, line, paths, held, frozenset(inside), iterations, chain, alone)


# ------------------------------------------------------------------ holders


def _last_name(path: str) -> str:
    return last_name(spoken(path))


def _chains(graph: Snapshot, owners: list[Owner]) -> Iterator[tuple[tuple[str, ...], tuple[Owner, ...]]]:
    """Piles of tensors that each reach many iterations; the tensors that one line made in the same way are one pile."""
    once: dict[tuple[int, int], Owner] = {}
    for owner in owners:
        once.setdefault((owner.node, owner.output_nr), owner)
    groups: dict[object, list[Owner]] = defaultdict(list)
    for owner in once.values():
        place = graph.place_of(owner.node)
        line = source_line(place) if place is not None else re.sub(r"\[[^]]*\]", "[]", owner.path)
        groups[(_last_name(owner.path), owner.kind == "frame", line)].append(owner)
    for held in groups.values():
        paths = [owner.path for owner in held]
        whole = {path[: path.rindex("[")] for path in paths if path.endswith("]")}
        in_one = len(whole) == 1 and all(path.endswith("]") for path in paths) and len(paths) > 1
        yield tuple(whole) if in_one else tuple(paths), tuple(held)


def _containers(
    owners: list[Owner], below: dict[int, frozenset[int]]
) -> Iterator[tuple[tuple[str, ...], tuple[Owner, ...]]]:
    """Piles of containers whose elements together reach many iterations; of nested ones the inner, if alone."""
    groups: dict[tuple[int, str], list[Owner]] = defaultdict(list)
    for owner in owners:
        for bracket in re.finditer(r"\[", owner.path):
            groups[owner.anchor, owner.path[: bracket.start()]].append(owner)
    count = {one: len(frozenset().union(*(below[owner.node] for owner in held))) for one, held in groups.items()}
    piling = sorted((one for one in groups if count[one] >= ENOUGH), key=lambda one: len(one[1]))
    covered: set[tuple[int, str]] = set()
    for outer in piling:
        if outer in covered:
            continue
        at = outer
        while True:
            inner = [one for one in piling if _is_in(one, at)]
            covered.update(inner)
            nearest = [one for one in inner if not any(_is_in(one, other) for other in inner)]
            if len(nearest) != 1 or 2 * count[nearest[0]] < count[at]:
                break
            at = nearest[0]
        yield (at[1],), tuple(groups[at])


def _is_in(one: tuple[int, str], other: tuple[int, str]) -> bool:
    """Whether a container, by its anchor and path, is an element of another one, or deeper inside."""
    return one[0] == other[0] and one[1].startswith(f"{other[1]}[")


# ------------------------------------------------------------------ kept on purpose


def _grows(record: Record, graph: Snapshot, path: str, held: tuple[Owner, ...]) -> bool:
    """Whether a container kept its elements and got more, as far as it was observed.

    A container that dropped some elements and kept others has a bound, unless it had more all the same, again and again
    and to the end; so has one that always had the same number. What has another name for the moment, in a batch that
    was drawn from the container, is not dropped.
    """
    changed: list[tuple[set[int], set[int]]] = []
    growing: list[bool] = []
    at = (held[0].anchor, path)
    for looks in _looks_of_lines(record):  # those of one line look equally far back
        seen = (_in_and_elsewhere(one, at) for one in (*(look.graph for look in looks), graph))
        stages = [stage for stage in seen if stage[0]]
        for (then, _), (now, elsewhere) in zip(stages, stages[1:]):
            growing.append(len(then) < len(now) and then - elsewhere < now)
            if then != now:
                changed.append((then - elsewhere, now))
    dropping = [(then, now) for then, now in changed if now & then and then - now]
    if dropping:
        return dropping[-1] == changed[-1] and len(dropping) > 1 and all(len(then) < len(now) for then, now in dropping)
    return not growing or any(growing)


def _in_and_elsewhere(graph: Snapshot, at: tuple[int, str]) -> tuple[set[int], set[int]]:
    """What a container holds (uids of nodes), and what only other names hold."""
    inside = {graph.uid[owner.node] for owner in graph.owners if _is_in((owner.anchor, owner.path), at)}
    return inside, {graph.uid[owner.node] for owner in graph.owners} - inside


def _of_no_use(record: Record, graph: Snapshot, line: Line, made: dict[int, int]) -> frozenset[int]:
    """The iterations whose kept nodes have no use any more, as far as can be known.

    A node that a call of its own iteration ran is kept for nothing. One that a later call ran together with nodes of
    other iterations was kept for that call: it ends a pass of a loop around these iterations, and what counts there is
    whether graphs of its passes are kept. One that no call has run may be kept for such a call, if there were such
    calls before, or if the program did not come to its end; unless it saved what has been modified since.

    Parameters
    ----------
    made
        Node -> the iteration that made it.
    """
    ended = _run_by_a_loop_around(record, graph, line, made)
    made = {i: at for i, at in made.items() if i not in ended}
    uids = {graph.uid[i]: at for i, at in made.items()}
    own: set[int] = set()
    retained: set[int] = set()  # by a call that keeps them for another one, which may still come
    together: set[int] = set()
    for call in record.calls:
        ran = {uids[uid] for uid in call.executed if uid in uids}
        mine = line.around(call.n) if len(ran) == 1 else {line.number.get(call.n)}
        (retained if record.unfinished and call.retain_graph else own).update(ran & mine)
        together.update(ran - mine)
    for i, at in made.items():
        call = line.calls[at]
        if call.ran_number(graph.seq[i]) or any(graph.slot_freed_by[slot] == call.n for slot in graph.slots_of(i)):
            (retained if record.unfinished and call.retain_graph else own).add(at)
    own |= retained & together
    open_ = set(made.values()) - own - together
    if record.unfinished:
        stale = (i for i in made if any(graph.slot_state[slot] == SlotState.STALE for slot in graph.slots_of(i)))
        open_ &= {made[i] for i in stale}
    if len(own) >= ENOUGH:
        return frozenset(own | open_)
    counted = {at for at in open_ if (call := line.calls[at]).executed_count and not (call.executed or call.distances)}
    waiting = _newest_together(record, line) <= min((graph.seq[i] for i, at in made.items() if at in open_), default=0)
    kept = bytes_held(graph, (i for i, at in made.items() if at in open_))
    return frozenset(own | open_ if not waiting and (kept or counted) else own)


def _run_by_a_loop_around(
    record: Record, graph: Snapshot, line: Line, made: dict[int, int], later_than: int = -1
) -> set[int]:
    """The nodes that a call of another line ran together with those of other iterations, all made since its last call.

    A call that comes in each iteration has but one iteration of its own: what it runs of earlier ones was carried over.
    Only calls with a number above `later_than` count.
    """
    by_uid = {graph.uid[i]: i for i in made}
    by_seq = {graph.seq[i]: i for i in made}
    before: dict[object, int] = {}
    found: set[int] = set()
    for call in record.calls:
        other = (call.thread, *source_line(call.place))
        since, before[other] = before.get(other, -1), call.newest_seq
        if call.n in line.number or call.result != "ok" or call.n <= later_than:
            continue
        ran = {by_uid[uid] for uid in call.executed if uid in by_uid}
        ran |= {by_seq[seq] for one in call.distances if (seq := call.highest_seq - one) in by_seq}
        fresh = {i for i in ran if graph.seq[i] >= since}
        if len({made[i] for i in fresh}) > 1:
            found |= fresh
    return found


def _is_beside_the_losses(graph: Snapshot, line: Line, held: tuple[Owner, ...], made: dict[int, int]) -> bool:
    """Whether a chain that steps of a higher-order gradient keep leads to none of their losses: moments, averages.

    Weights that are updated with their graph are in the loss of the next step, and a sum of losses is one number: a
    call that is still to come may run them.
    """
    sizes = {(ref.node, ref.output_nr): ref.numel for ref in graph.roots}
    last = next((call for call in reversed(line.calls) if call.graph is not None), None)
    if last is None or last.graph is None or len(set(made.values())) < MANY:
        return False
    if all(sizes.get((owner.node, owner.output_nr), 1) == 1 for owner in held):
        return False
    behind = {last.graph.uid[i] for i in reachable(last.graph, (root.node for root in last.roots if root.node >= 0))}
    return not any(graph.uid[i] in behind for i, at in made.items() if at < line.number[last.n])


def _newest_together(record: Record, line: Line) -> float:
    """The sequence number at which the last call began that ran several iterations of a line; infinite: none did."""
    for call in reversed(record.calls):
        if call.n not in line.number and call.graph is not None and call.result == "ok":
            seqs = sorted(seq for seq in call.graph.seq if seq >= 0)
            if line.periods(seqs) >= ENOUGH:
                return call.newest_seq
    return float("inf")


# ------------------------------------------------------------------ the finding


def _by(place: Place | None, pile: Pile) -> str:
    """The line that made them, where that gives it another name than what holds it now."""
    made = source.statement_of(place.source) if place is not None else None
    own = {last_name(local(path)) for path in pile.paths}
    if made is None or place is None or not pile.chain or own & {last_name(one) for one in source.targets(made)}:
        return ""
    return f" by {short(place.source)} ({where(place)})" if any(source.targets(made)) else ""


def _finding(record: Record, pile: Pile, look: Look | None) -> Finding:
    """The finding of a pile. `look`: the moment at which it was seen, if it is gone since."""
    graph, passes = pile.graph, len(pile.iterations)
    nodes = sum(graph.kind[i] != Kind.ACCUMULATE for i in pile.inside)
    kept = bytes_held(graph, pile.inside)
    place = graph.place_of(pile.owners[0].node)
    shown = names(tuple(map(spoken, pile.paths)))
    tensors = len({(owner.node, owner.output_nr) for owner in pile.owners})
    one = len(pile.paths) == 1
    held = f"{nodes} nodes and {bytes_text(kept)} of saved tensors" if kept else f"{nodes} nodes"
    if one and tensors > 1:
        what = f"{shown} keeps {tensors} tensors. Each refers to the graph that made it: {held} in all."
    elif one:
        what = f"{shown} refers to the graph that made it: {held} in all."
    else:
        what = f"{shown} refer to the graphs that made them: {held} in all."
    many = f"They were made in {passes} iterations{_by(place, pile)}."
    headline = f"Graphs of {passes} iterations pile up in {shown}."
    if look is not None:
        function = pile.name.split(":", 1)[0]
        headline = f"Graphs piled up in {shown} while `{function}` ran."
        many = f"This was measured after {passes} iterations of {len(pile.line.calls)}; it grew with each one."
        what = what.replace(" refers ", " referred ").replace(" keeps ", " kept ").replace(" refer ", " referred ")
    carriers = tuple(dict.fromkeys(map(spoken, pile.paths)))
    fixes = holders.for_pile(record, pile, look is None)
    return Finding(
        "leak",
        "warning",
        f"{what} {many}",
        headline,
        node=graph.name_of(pile.owners[0].node),
        node_uid=graph.uid[pile.owners[0].node],
        made_at=place,
        carriers=carriers,
        bytes=kept,
        uids=tuple(graph.uid[owner.node] for owner in pile.owners[:50]),
        fixes=fixes,
    )
