"""How a backward call is written."""

from __future__ import annotations

from typing import NamedTuple

from graphwidget.diagnosis.wording import number, spoken
from graphwidget.model import BackwardCall, TensorRef

__all__ = ["Written", "kept_by", "recorded"]


class Written(NamedTuple):
    """The arguments of a call as they are written."""

    gradient: bool = False
    retain_graph: bool | None = None
    create_graph: bool = False
    inputs: bool = False

    def on(self, roots: tuple[TensorRef, ...], api: str = "backward") -> str:
        """``loss.backward(retain_graph=True)``."""
        names = [spoken(root.path) if root.path else "tensor" for root in roots]
        options = {"retain_graph": self.retain_graph, "create_graph": self.create_graph or None}
        given = ["gradient"] * self.gradient
        given += [f"{name}={value}" for name, value in options.items() if value is not None]
        given += ["inputs=…"] * (self.inputs and api == "backward")
        if len(names) == 1 and api == "backward":
            return f"{names[0]}.backward({', '.join(given)})"
        tensors = names[0] if len(names) == 1 else f"[{', '.join(names)}]"
        if api == "backward":
            return f"torch.autograd.backward({', '.join([tensors, *given])})"
        return f"torch.autograd.grad({', '.join([tensors, '…', *given])})"

    @property
    def keeps(self) -> str:
        """The argument that makes the call keep what its nodes saved; empty: the call frees that."""
        return kept_by(self.create_graph if self.retain_graph is None else self.retain_graph, self.create_graph)


def kept_by(keeps: bool, create_graph: bool) -> str:
    """The argument that makes a call keep what its nodes saved, as it is written; empty if it does not."""
    return ("create_graph=True" if create_graph else "retain_graph=True") if keeps else ""


def recorded(call: BackwardCall) -> str:
    """A recorded call with its number: ``① loss.backward()``."""
    retain = True if call.retain_graph and not call.create_graph else None
    written = Written(retain_graph=retain, create_graph=call.create_graph, inputs=call.inputs is not None)
    return f"{number(call.n)} {written.on(call.roots, call.api)}"
