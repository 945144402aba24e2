"""Operations of PyTorch that surely give a view: the same memory under another shape."""

from __future__ import annotations

__all__ = ["VIEWS"]

# As their nodes are called, without `Backward`, in small letters: ``asstrided`` for `AsStrided` and for ``as_strided``.
VIEWS = frozenset(
    "alias asstrided conj diagonal expand imag indices narrow negview permute real reshapealias select slice squeeze "
    "squeezemultiple swapaxes swapdims t transpose unfold unsqueeze values view viewascomplex viewasreal".split()
)
