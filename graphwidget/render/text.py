"""The picture in characters: for terminals, GitHub, screen readers, and wherever no widget can run.

One line per node, from the losses to the leaves::

    Autograd graph: 3 nodes, 2 leaves, 1 root; 0 B held, 2 of 2 saved tensors freed
    ◆ SumBackward0  loss  In[2]:1
    ● MvBackward0  y  In[1]:3  self float32[3,4] 48 B, vec float32[4] 16 B: freed by call 1 (In[2]:2)
    ├─○ AccumulateGrad  t  leaf float32[3,4], .grad is set
    ○ AccumulateGrad  a  leaf float32[4], .grad is set

The longest path of a node to a leaf goes straight down; other paths branch off above it. A node that has
been drawn already is only named. Long graphs are folded to `max_lines`: important lines (roots, failing
nodes, named and shared nodes) stay, and the others are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

from graphwidget.model import BackwardCall, Drawing, Forecast, Kind, SlotState, Snapshot, bytes_text, type_text
from graphwidget.render.report import finding_lines
from graphwidget.render.words import call_text, count, op_name, place_text

__all__ = ["forecast_lines", "picture"]

_MAX_INDENT = 8  # side branches of side branches; deeper ones are drawn at this depth
_MAX_LABELS = 3
_MAX_SLOTS = 6


def picture(drawing: Drawing, *, max_lines: int = 60, findings: bool = True) -> str:
    """Draw the graph, and its findings, as plain text of about `max_lines` lines."""
    snapshot = drawing.snapshot
    head = [_header(snapshot)]
    if drawing.busy:
        head.append(drawing.busy)
    tail = [line for finding in drawing.findings for line in finding_lines(finding)] if findings else []
    tail += [f"Note: {note}" for note in snapshot.notes]
    if len(tail) > max_lines // 2:
        hidden = len(tail) - max_lines // 2
        tail = [*tail[: max_lines // 2], f"… {hidden} more lines of findings: %graphwidget explain"]
    room = max(10, max_lines - len(head) - len(tail))
    body = _Body(drawing, _lines(snapshot))
    return "\n".join([*head, *body.folded(room), *tail])


def forecast_lines(call: str, forecast: Forecast) -> Iterator[str]:
    """The forecast of a call as plain lines. `call` is its text, e.g. ``loss.backward()``."""
    size = bytes_text(forecast.freed_bytes)
    slots = count(sum(map(len, forecast.frees.values())), "saved tensor")
    if forecast.ok is None:
        yield f"Whether {call} would succeed is unknown: {forecast.why}"
    elif forecast.ok:
        yield f"{call} would succeed: {count(len(forecast.executes), 'node')} would run."
    else:
        at = f" at {forecast.fails_at.name}" if forecast.fails_at else ""
        yield f"{call} would raise{at} ({forecast.word}): {forecast.why}"
    if forecast.frees:
        yield f"  frees {slots}, {size} ({bytes_text(forecast.returned_bytes)} come back, the rest has other owners)"
    elif forecast.ok:
        yield "  frees nothing"
    if forecast.reaches:
        names = [node.labels[0] if node.labels else "an unnamed leaf" for node in forecast.reaches]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        yield f"  changes .grad of {', '.join(names[:8])}{more}"
    yield from (f"  assumes: {text}" for text in forecast.assumes)
    yield from (f"  fix: {fix.text}" for fix in forecast.fixes)


def _header(snapshot: Snapshot) -> str:
    if not len(snapshot):
        return "Autograd graph: empty. Compute something from a tensor with requires_grad=True."
    ghosts = sum(snapshot.ghost)
    leaves = snapshot.kind.count(Kind.ACCUMULATE)
    nodes = count(len(snapshot) - leaves, "node") + (f" ({ghosts} gone)" if ghosts else "")
    slots = Counter(snapshot.slot_state)
    saved = len(snapshot.slot_state) - slots[SlotState.UNSAVED]
    states = [
        f"{slots[state]} {state.word}"
        for state in (SlotState.FREED, SlotState.STALE, SlotState.PACKED, SlotState.UNKNOWN)
        if slots[state]
    ]
    parts = f"{nodes}, {count(leaves, 'leaf', 'leaves')}, {count(len(snapshot.roots), 'root')}"
    of = f" of {count(saved, 'saved tensor')}" if saved else ""
    memory = f"{bytes_text(snapshot.held_bytes())} held"
    return f"Autograd graph: {parts}; {memory}" + (f"; {', '.join(states)}{of}" if states else "")


# -- the order of lines ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Line:
    """The place of a node in the text. `again`: it was drawn in full further up."""

    node: int
    glyphs: str
    again: bool = False
    depth: int = 0


def _lines(snapshot: Snapshot) -> list[_Line]:
    """Depth first from the roots; the longest path comes last, so that it continues straight down."""
    height = _heights(snapshot)
    drawn = bytearray(len(snapshot))
    lines: list[_Line] = []
    # (node, glyphs in front of it, glyphs in front of what follows it, depth)
    stack = [(node, "", "", 0) for node in reversed(_starts(snapshot))]
    while stack:
        node, first, rest, depth = stack.pop()
        if drawn[node]:
            lines.append(_Line(node, first, True, depth))
            continue
        drawn[node] = 1
        lines.append(_Line(node, first, False, depth))
        children = sorted(dict.fromkeys(snapshot.next(node)), key=height.__getitem__)
        if children:
            inner = rest + "│ " if depth < _MAX_INDENT else rest
            stack.append((children[-1], rest, rest, depth))
            stack.extend((child, rest + "├─", inner, depth + 1) for child in reversed(children[:-1]))
    return lines


def _starts(snapshot: Snapshot) -> list[int]:
    """Root nodes first, then other nodes without users (ghosts of earlier graphs)."""
    wanted = dict.fromkeys(ref.node for ref in snapshot.roots if ref.node >= 0)
    reached = bytearray(len(snapshot))
    for target in snapshot.edge_to:
        reached[target] = 1
    roots = [node for node in wanted if not reached[node]]
    return roots + [node for node in range(len(snapshot)) if not reached[node] and node not in wanted]


def _heights(snapshot: Snapshot) -> list[int]:
    """Per node the length of its longest path to a leaf, in steps."""
    height = [0] * len(snapshot)
    for node in _leaves_first(snapshot):
        for target in snapshot.next(node):
            if height[target] >= height[node]:
                height[node] = height[target] + 1
    return height


def _leaves_first(snapshot: Snapshot) -> list[int]:
    """Topological order, by counting: every node after all nodes it hands gradients to."""
    waiting = [0] * len(snapshot)
    for target in snapshot.edge_to:
        waiting[target] += 1
    order = [node for node, left in enumerate(waiting) if not left]
    for node in order:  # grows while it is read
        for target in snapshot.next(node):
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    return order[::-1]


# -- the text of a line ----------------------------------------------------------------------------


class _Body:
    """The lines of the nodes, written out or folded."""

    def __init__(self, drawing: Drawing, lines: Sequence[_Line]) -> None:
        self.snapshot = drawing.snapshot
        self.lines = lines
        self.calls: dict[int, BackwardCall] = {call.n: call for call in drawing.calls}
        self.root_of = {ref.node: ref.path for ref in self.snapshot.roots if ref.node >= 0}
        self.sharers = _sharers(self.snapshot)
        self.failed = {call.failed_uid: call.n for call in drawing.calls if call.failed_uid is not None}
        self.in_findings = {uid for finding in drawing.findings for uid in finding.uids}

    def folded(self, room: int) -> list[str]:
        """All lines, or the most important ones and counts of the others."""
        if len(self.lines) <= room:
            return [self.text(line) for line in self.lines]
        kept = self.choose(room)
        out: list[str] = []
        for folded, run in groupby(enumerate(self.lines), key=lambda item: item[0] not in kept):
            lines = [line for _, line in run]
            out += [self.summary(lines)] if folded and len(lines) > 1 else map(self.text, lines)
        return out

    def choose(self, room: int) -> set[int]:
        """Positions of the lines to keep: the most important ones that fit together with the folds between."""
        order = sorted(range(len(self.lines)), key=lambda at: (-self.weight(self.lines[at]), self.level(at), at))
        kept: set[int] = set()
        used = 1  # one fold for everything
        for at in order:
            sides = (at > 0 and at - 1 not in kept) + (at + 1 < len(self.lines) and at + 1 not in kept)
            if used + sides > room:
                break
            kept.add(at)
            used += sides  # a fold becomes: the line, and a fold on each side that is still closed
        return kept

    def weight(self, line: _Line) -> int:
        snapshot, node = self.snapshot, line.node
        if snapshot.uid[node] in self.failed:
            return 6
        if snapshot.uid[node] in self.in_findings:
            return 5
        if line.again:
            return 0
        if node in self.root_of:
            return 4
        if snapshot.kind[node] == Kind.ACCUMULATE:
            return 1
        return 3 if node in snapshot.labels else 2 if line.depth == 0 else 1

    def level(self, at: int) -> int:
        """How deep in the module tree this line differs from the one before: block borders come before inner ones."""
        here, before = (self.snapshot.module_of(self.lines[i].node) for i in (at, max(at - 1, 0)))
        mine = here.path.split(".") if here else []
        last = before.path.split(".") if before else []
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(mine, last)))
        return same if mine != last else len(mine) + 1

    def text(self, line: _Line) -> str:
        snapshot, node = self.snapshot, line.node
        labels, name = self.labels(node), op_name(snapshot.name_of(node))
        if line.again:
            return " ".join(filter(None, [f"{line.glyphs}↑ {name}", labels, "(drawn above)"]))
        parts = [
            f"{line.glyphs}{self.glyph(node)} {name}",
            labels,
            place_text(snapshot.place_of(node)),
            module.path if (module := snapshot.module_of(node)) else "",
            self.slots(node),
            *self.marks(node),
        ]
        return "  ".join(filter(None, parts))

    def glyph(self, node: int) -> str:
        if self.snapshot.ghost[node]:
            return "◌"
        if node in self.root_of:
            return "◆"
        return "○" if self.snapshot.kind[node] == Kind.ACCUMULATE else "●"

    def labels(self, node: int) -> str:
        leaf = self.snapshot.leaves.get(node)
        paths = leaf.paths if leaf else self.snapshot.labels.get(node, ())
        if not paths and self.root_of.get(node):
            paths = (str(self.root_of[node]),)
        more = f" +{len(paths) - _MAX_LABELS}" if len(paths) > _MAX_LABELS else ""
        return ", ".join(paths[:_MAX_LABELS]) + more

    def marks(self, node: int) -> Iterator[str]:
        snapshot = self.snapshot
        leaf = snapshot.leaves.get(node)
        if leaf:
            yield f"leaf {type_text(leaf.dtype, leaf.shape)}, {'.grad is set' if leaf.has_grad else 'no .grad'}"
        if snapshot.ghost[node]:
            yield "(gone)"
        if node in self.sharers:
            yield f"shared by {self.sharers[node]}"
        failed = self.failed.get(snapshot.uid[node])
        if failed is not None:
            yield f"✕ {call_text(failed, self.calls.get(failed))} raised here"

    def slots(self, node: int) -> str:
        """Saved tensors, grouped by state: ``self float32[3] 12 B, other …: freed by call 1 (…)``."""
        snapshot = self.snapshot
        groups: dict[str, list[str]] = {}
        slots = [s for s in snapshot.slots_of(node) if snapshot.slot_state[s] != SlotState.UNSAVED]
        for slot in slots[:_MAX_SLOTS]:
            groups.setdefault(self.state(slot), []).append(self.slot(slot))
        text = "; ".join(f"{', '.join(names)}: {state}" for state, names in groups.items())
        return text + (f"; {len(slots) - _MAX_SLOTS} more saved tensors" if len(slots) > _MAX_SLOTS else "")

    def slot(self, slot: int) -> str:
        snapshot = self.snapshot
        dtype, shape = snapshot.slot_dtype[slot], snapshot.slot_shape[slot]
        kind = type_text(snapshot.dtypes[dtype] if dtype >= 0 else None, snapshot.shapes[shape] if shape >= 0 else None)
        size = bytes_text(snapshot.slot_bytes[slot]) if snapshot.slot_bytes[slot] else ""
        return " ".join(filter(None, [snapshot.slot_names[snapshot.slot_name[slot]], kind, size]))

    def state(self, slot: int) -> str:
        state = SlotState(self.snapshot.slot_state[slot])
        if state == SlotState.FREED:
            n = self.snapshot.slot_freed_by[slot]
            return f"freed by {call_text(n, self.calls.get(n))}" if n >= 0 else "freed, by an unknown call"
        if state == SlotState.STALE:
            return "stale (modified in place since)"
        return "packed (behind a saved-tensor hook)" if state == SlotState.PACKED else state.word

    def summary(self, gap: Sequence[_Line]) -> str:
        """``⋯ 120 nodes: 60 × MulBackward0, 60 × AddBackward0; 40 of 80 saved tensors freed``."""
        snapshot = self.snapshot
        glyphs = min((line.glyphs.replace("├─", "│ ") for line in gap), key=len)
        nodes = [line.node for line in gap if not line.again]
        if not nodes:
            return f"{glyphs}⋯ {count(len(gap), 'node')} drawn above"
        names = Counter(op_name(snapshot.name_of(node)) for node in nodes).most_common()
        listed = ", ".join(f"{times} × {name}" for name, times in names[:4]) + (", …" if len(names) > 4 else "")
        states = Counter(snapshot.slot_state[slot] for node in nodes for slot in snapshot.slots_of(node))
        saved = sum(states.values()) - states[SlotState.UNSAVED]
        parts = [f"{states[s]} {s.word}" for s in (SlotState.HELD, SlotState.FREED, SlotState.STALE) if states[s]]
        of = f"; {', '.join(parts)} of {count(saved, 'saved tensor')}" if parts else ""
        return f"{glyphs}⋯ {count(len(nodes), 'node')}: {listed}{of}"


def _sharers(snapshot: Snapshot) -> dict[int, str]:
    """Node -> "loss1, loss2" for nodes that two or more roots reach. At most 64 roots are followed."""
    roots = [ref for ref in snapshot.roots if ref.node >= 0][:64]
    if len(roots) < 2:
        return {}
    bits = [0] * len(snapshot)
    for number, ref in enumerate(roots):
        bits[ref.node] |= 1 << number
    for node in reversed(_leaves_first(snapshot)):
        for target in snapshot.next(node):
            bits[target] |= bits[node]
    names: dict[int, str] = {}
    found = {}
    for node, mask in enumerate(bits):
        if mask & (mask - 1) and snapshot.kind[node] != Kind.ACCUMULATE:
            if mask not in names:
                paths = [ref.path or "an unnamed root" for i, ref in enumerate(roots) if mask >> i & 1]
                names[mask] = ", ".join(paths[:4]) + (f" +{len(paths) - 4}" if len(paths) > 4 else "")
            found[node] = names[mask]
    return found
