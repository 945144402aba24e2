"""A snapshot in Graphviz' language, for papers and for other tools.

Inputs at the top, losses at the bottom, arrows from loss to leaf, as everywhere in graphwidget. States
have words and line styles, never a colour alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphwidget.model import Kind, Node, SlotState, Snapshot, type_text
from graphwidget.render.words import place_text

__all__ = ["to_dot"]


def to_dot(snapshot: Snapshot) -> str:
    """DOT text of a `digraph`; node ids are ``n`` and the uid."""
    return "\n".join(_statements(snapshot)) + "\n"


def _statements(snapshot: Snapshot) -> Iterator[str]:
    roots = {ref.node for ref in snapshot.roots}
    yield "digraph autograd {"
    yield '  rankdir=BT; node [shape=box, fontname="Helvetica", fontsize=10];'
    for node in snapshot.nodes:
        attributes = f"label={_quoted(_label(node))}"
        if node.kind == Kind.ACCUMULATE:
            attributes += ", shape=ellipse"
        styles = [s for s, on in (("dotted", node.is_ghost), ("bold", node.index in roots)) if on]
        if styles:
            attributes += f', style="{",".join(styles)}"'
        yield f"  n{node.uid} [{attributes}];"
    for node in snapshot.nodes:
        for edge in range(snapshot.edge_start[node.index], snapshot.edge_start[node.index + 1]):
            nr = snapshot.edge_nr[edge]
            label = f' [label="{nr}"]' if nr else ""
            yield f"  n{node.uid} -> n{snapshot.uid[snapshot.edge_to[edge]]}{label};"
    yield "}"


def _label(node: Node) -> str:
    lines = [node.name, ", ".join(node.labels), place_text(node.place)]
    if node.leaf:
        lines.append(type_text(node.leaf.dtype, node.leaf.shape))
    for saved in node.saved:
        if saved.state != SlotState.UNSAVED:
            kind = type_text(saved.dtype, saved.shape)
            by = f" by call {saved.freed_by + 1}" if saved.freed_by is not None else ""
            lines.append(" ".join(filter(None, [f"{saved.name}:", kind, saved.state.word])) + by)
    return "\n".join(filter(None, lines))


def _quoted(text: str) -> str:
    """A DOT string. Backslashes start escapes there; a line break is one."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "\\n")
    return f'"{escaped}"'
