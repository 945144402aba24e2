"""Measurements at the place where an error was raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from graphwidget.model.graph.parts import Place

__all__ = ["AppliedFunction", "CopiedTensor", "Recomputed", "RunningModule", "Scene", "Sight", "UsedInside", "Value"]


@dataclass(frozen=True, slots=True)
class Value:
    """A variable as it was when the error was raised.

    Attributes
    ----------
    kind
        A tensor, a module, or a class that is an ``autograd.Function``.
    type_name
        The name of its class; for a Function its own name.
    requires_grad
        For a tensor: its flag. For a module: whether one of its parameters requires grad; None: it has no parameters.
    leaf
        For a tensor: its `is_leaf`; None: reading it would have changed something.
    view_of
        For a view: a name of its base, empty if the base has none. None: it is no view.
    number
        Sequence number of the node that computed it; -1: none did, or it is not known.
    mapped
        Whether `vmap` maps over it, so that it stands for one tensor of each element.
    """

    kind: Literal["tensor", "module", "function"]
    type_name: str = ""
    requires_grad: bool | None = None
    leaf: bool | None = None
    view_of: str | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    number: int = -1
    mapped: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """One frame of a cell's code: its line, and the variables whose names the cell writes.

    `decorators` are the grad modes that torch had switched on around its call, such as ``"no_grad"``; `forward_of` is
    the custom Function whose `forward` called it, or is it: that runs without grad mode. `local` are the names of a
    function's own variables. `others` says what variables are that hold no tensor, module or Function:
    ``"a tuple of 2"``, ``"None"``.
    """

    place: Place
    in_function: bool
    values: Mapping[str, Value] = field(default_factory=dict)
    decorators: tuple[str, ...] = ()
    forward_of: str = ""
    local: frozenset[str] = frozenset()
    others: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunningModule:
    """A module whose `forward` was running. `path` is its name from the user's code; empty if it has none there.

    `statement` is what it was running, `buffers` are the names of its buffers that this reads or writes. `tracks`: it
    keeps running statistics. These three are known of the module in which an error was raised.
    """

    path: str
    class_name: str
    inplace: bool = False
    statement: str = ""
    buffers: tuple[str, ...] = ()
    tracks: bool = False


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The first tensor that a checkpoint saved otherwise when it ran again.

    `position` counts from 0, `seq` is the sequence number of the node that saved it in the forward, `slot` its name.
    `evaluating` are the classes of the modules in what ran again that are in evaluation mode and compute by their mode.
    """

    position: int
    seq: int = -1
    slot: str = ""
    evaluating: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UsedInside:
    """A custom Function in a graph that reads, besides the tensors it was applied to, inputs of the call that failed.

    `seq` is the sequence number of its node, `inputs` are positions among the inputs that the call was given.
    """

    seq: int
    inputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CopiedTensor:
    """A computed tensor in an object that could not be copied because of it.

    Attributes
    ----------
    path
        Its name from the line that copies: ``net[0].weight``. It begins with a dot or a bracket where the object has no
        name there.
    number
        Sequence number of the node that computed it; -1: not known.
    hook
        The forward pre-hook of its module that computes it at each forward; empty: none is known.
    sources
        Of such a hook: the parameters of the module that the tensor was computed from.
    remover
        Of such a hook: the function of its library that takes it away, as ``torch.nn.utils.prune.remove``. Empty: none
        is known.
    """

    path: str
    number: int = -1
    hook: str = ""
    sources: tuple[str, ...] = ()
    remover: str = ""


@dataclass(frozen=True, slots=True)
class AppliedFunction:
    """A custom Function that was being applied.

    Attributes
    ----------
    name
        The name of the class.
    forward
        The first line of its `forward`, which may be that of a class it is derived from; decorators come first. None:
        that is not the user's own.
    """

    name: str
    forward: Place | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """Where an error was raised.

    Attributes
    ----------
    grad_mode
        Whether grad mode was on at a call; None: unknown.
    inference_mode
        Whether inference mode was on at a call.
    sights
        The frames of cells, innermost first.
    raised_in
        Origin of a call's error: the engine itself; Python code that it ran (a Function's backward, a hook);
        or another call of the engine in that code, whose error says nothing about this call's own graph.
    inside
        Of a call: the frames of the user's own code that it ran and that raised, innermost first.
    running
        The modules whose `forward` was running, innermost first. Only of errors that may be about them.
    hooked
        Paths of modules with full backward hooks. Only of errors that are about such hooks.
    parameters
        Names of the parameters of a DistributedDataParallel, in the order in which its errors number them.
    inference
        Names of inference tensors, also of those in modules. Only of errors that are about such tensors.
    checkpointed
        The function that a checkpoint was running again, as its qualified name. Empty: none.
    computed
        Names of computed tensors that modules keep. Only of errors of a copy.
    copied
        The computed tensors in the object that was being copied, the one at which the copy stopped first. Only of
        errors of a copy; empty: not known.
    recomputed
        What a checkpoint saved otherwise when it ran again; None: unknown, or another error.
    refused
        The root that was refused because it is no single number. Only of such errors; None: another one, or unknown.
    trainable
        The leaf tensors that require grad, by all their paths, with their shapes. Only of errors about gradients that
        the backward of a custom Function returns.
    frozen
        Path of a module in sight -> the names of its parameters, in their order, where none of them requires grad. Only
        of errors about roots without a graph.
    within
        The module in whose code, which is not the user's own, an error of a cell was raised. None: in no such module.
    inside_functions
        Custom Functions in the graph that read inputs of the call. Only of errors about inputs that were not used.
    applied
        The custom Function that the line of an error was applying when code that is not the user's own raised. None:
        none was.
    """

    grad_mode: bool | None = None
    sights: tuple[Sight, ...] = ()
    raised_in: Literal["engine", "python", "call"] = "engine"
    inside: tuple[Sight, ...] = ()
    running: tuple[RunningModule, ...] = ()
    hooked: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    inference: tuple[str, ...] = ()
    checkpointed: str = ""
    computed: tuple[str, ...] = ()
    recomputed: Recomputed | None = None
    inference_mode: bool = False
    refused: Value | None = None
    trainable: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    frozen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inside_functions: tuple[UsedInside, ...] = ()
    within: RunningModule | None = None
    copied: tuple[CopiedTensor, ...] = ()
    applied: AppliedFunction | None = None

    def value(self, name: str) -> Value | None:
        """The variable of a name in the line that raised."""
        return self.sights[0].values.get(name) if self.sights else None

    def is_local(self, name: str) -> bool:
        """Whether a path begins with a variable of the function that raised."""
        return bool(self.sights) and name.split(".", 1)[0].split("[", 1)[0] in self.sights[0].local
