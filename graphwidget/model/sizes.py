"""Sizes and types as text."""

from __future__ import annotations


def bytes_text(count: int) -> str:
    """Bytes as people read them: ``24 B``, ``1.2 kB``, ``34 MB`` (powers of 1000, as PyTorch's own reports count)."""
    if count < 1000:
        return f"{count} B"
    size, units = count / 1000, ["kB", "MB", "GB"]
    while size >= 999.5 and len(units) > 1:
        size /= 1000
        del units[0]
    return f"{size:.1f} {units[0]}" if size < 99.95 else f"{size:.0f} {units[0]}"


def type_text(dtype: str | None, shape: tuple[int, ...] | None) -> str:
    """``float32[3,4]``; ``float32`` where the shape is unknown; empty where both are."""
    if dtype is None and shape is None:
        return ""
    return (dtype or "?") + ("" if shape is None else f"[{','.join(map(str, shape))}]")
