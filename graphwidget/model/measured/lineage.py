"""Where values left the graph, measured while the program ran once more."""

from __future__ import annotations

from dataclasses import dataclass

from graphwidget.model.measured.frozen import FrozenModule, MeasuredFrozen, MeasuredIdle, MeasuredJoined
from graphwidget.model.measured.text_line import TextLine

__all__ = [
    "INTO_A_LEAF",
    "INTO_A_TENSOR",
    "Lineage",
    "MeasuredConstant",
    "MeasuredCut",
    "MeasuredEmptied",
    "MeasuredHook",
    "MeasuredLate",
    "MeasuredLeaf",
    "MeasuredNonFinite",
    "MeasuredTerm",
    "MeasuredUnpacked",
    "MeasuredZeros",
    "PlainInput",
    "TensorForm",
]


# `MeasuredCut.by` where only the values are taken, by a parameter or by another tensor: ``w.data = x``, ``w.copy_(x)``.
INTO_A_LEAF = "into a leaf"
INTO_A_TENSOR = "into a tensor"


@dataclass(frozen=True, slots=True)
class MeasuredCut:
    """An operation that was given values with a graph, and returned values without one.

    Attributes
    ----------
    lines
        The lines of the user's own code that were running, the innermost first.
    by
        The name of the operation: ``detach``, ``item``, ``argmax``, ``linear``; `INTO_A_LEAF` or `INTO_A_TENSOR`.
    grad_mode
        Whether grad mode was on.
    leaves
        Names of leaves behind the values, as far as they have some.
    wanted
        Whether one of them is trained by the optimizer whose call this is; see `Lineage`.
    switched
        The lines that were running when grad mode was switched off, the innermost first; none: it was on.
    positions
        Which parameters of optimizers are among the leaves: the number of the optimizer, in the order of their first
        steps, and that of the parameter in it. In another run of the program a parameter may have another of its names.
    used
        Whether a backward call began at something that was computed from what the operation returned, or gave a
        gradient to a leaf that had its values and that no optimizer holds; None: unknown, numbers or an array were
        taken from it.
    copies
        Names of leaves whose values had been copied into those behind the values: those of a shared network, where
        each worker computes with a copy.
    chosen
        Whether a backward call began at something that was chosen by indices computed from what the operation returned.
    asked
        Which inputs of the call that failed are among the leaves, by their positions, where its root was computed from
        what the operation returned, or chosen by it.
    twins
        What may stand in place of the methods that were running, so that their result has a graph: ``("sample",
        "rsample")``; of a method that has no such twin, an empty name. Also classes of which the second has it.
    used_at
        The lines of those backward calls.
    checkpointed
        Whether it ran inside of a re-entrant checkpoint, which switches grad mode off.
    """

    lines: tuple[TextLine, ...]
    by: str
    grad_mode: bool
    leaves: tuple[str, ...] = ()
    wanted: bool = False
    switched: tuple[TextLine, ...] = ()
    positions: tuple[tuple[int, int], ...] = ()
    used: bool | None = None
    copies: tuple[str, ...] = ()
    chosen: bool = False
    asked: tuple[int, ...] = ()
    twins: tuple[tuple[str, str], ...] = ()
    used_at: tuple[TextLine, ...] = ()
    checkpointed: bool = False


@dataclass(frozen=True, slots=True)
class MeasuredConstant:
    """A tensor without a graph that was made anew, and of which the root of the call that failed was computed.

    Attributes
    ----------
    kind
        ``"zero"``, ``"constant"``: made of zeros, or of ones; ``"data"``: drawn, or a range; ``"numbers"``: it was
        made of other numbers, or such were added, and they may be known from tensors; ``"frozen"``: a parameter that
        does not require grad; ``"unseen"``: it is not known how it was made.
    by, lines
        The name of the operation, and its lines, the innermost first.
    single
        Whether it has no dimension.
    latest
        Whether it was made since the call before.
    beside
        For each of the first lines, the variables there that had a graph of the same pass, without those that others
        of them were computed from: ``("logits", "out['boxes']")``.
    """

    kind: str
    by: str = ""
    lines: tuple[TextLine, ...] = ()
    single: bool = False
    latest: bool = False
    beside: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuredZeros:
    """A node at which a gradient arrived, and that passed only zeros on to parameters, in all calls that were watched.

    No other way gave these parameters another gradient in any step of their optimizer.

    Attributes
    ----------
    call
        The n of the first such call.
    node, name
        Which node it is: its position among those behind the roots, breadth first, and its name.
    leaves
        The parameters, by the positions of their AccumulateGrad nodes.
    steps
        How many steps of their optimizer there were, at least 2.
    why
        What its inputs were, as far as that explains it: ``"one"``, a softmax over a single value; ``"outside"`` of
        a range or below zero; ``"zeros"``, the other factor was zero; ``"masked"``; ``"cancel"``, several gradients
        arrived whose sum is zero. Empty: it is not known.
    dim
        The dimension of a softmax, not below 0; -1: it is another node.
    """

    call: int
    node: int
    name: str
    leaves: tuple[int, ...]
    steps: int
    why: str = ""
    dim: int = -1


@dataclass(frozen=True, slots=True)
class MeasuredNonFinite:
    """The first step of an optimizer that made parameters something else than finite numbers.

    Attributes
    ----------
    value
        What they became: ``"nan"``, ``"inf"`` or ``"-inf"``.
    paths
        Names of these parameters, as far as they have some.
    step, stepped
        Which step of its optimizer it was, from 1, and the lines that were running.
    stage
        Where the first value that is not finite came from, in the call that gave the gradient: ``"forward"``, an
        operation made it, and the root of the call is not finite; ``"written"``, the same, but the operation was given
        such a number, or no tensor at all; ``"given"``, the same, but no operation made it;
        ``"backward"``, the root is finite, and a node passed it on, although what arrived there is finite; ``"step"``:
        the gradients were finite. Empty: unknown.
    call
        The n of that call; None: unknown.
    by, made
        The name of the operation or of the node, and the lines that ran it, the innermost first.
    what
        That first value.
    behind, behind_made
        Of a nan that an operation made of an infinite value: the operation that made this one, and its lines.
    held
        What the node had saved at the place of the first such gradient: ```self` 0``.
    """

    value: str
    paths: tuple[str, ...]
    step: int
    stepped: tuple[TextLine, ...] = ()
    stage: str = ""
    call: int | None = None
    by: str = ""
    made: tuple[TextLine, ...] = ()
    what: str = ""
    behind: str = ""
    behind_made: tuple[TextLine, ...] = ()
    held: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredEmptied:
    """Gradients that lines of the program emptied before each step of their optimizer: none has used one.

    Attributes
    ----------
    call
        The n of the last call before they were emptied for the last time, or of the one that was running.
    cleared, stepped
        The lines that emptied them, and those of the step, the innermost first.
    steps
        How many steps there were.
    zeros
        Whether they were zeros, and not None.
    paths
        Names of some of the parameters.
    """

    call: int
    cleared: tuple[TextLine, ...]
    stepped: tuple[TextLine, ...]
    steps: int
    zeros: bool = False
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuredLeaf:
    """The only leaf behind the roots of a call, which the program made after its optimizers, and which none holds.

    Attributes
    ----------
    call
        The n of the call.
    by, lines
        The name of the operation that made it, ``tensor`` or ``requires_grad_``, and its lines, the innermost first.
    cuts
        The cuts behind the value that it was made with, the last one first.
    """

    call: int
    by: str
    lines: tuple[TextLine, ...]
    cuts: tuple[MeasuredCut, ...] = ()


@dataclass(frozen=True, slots=True)
class MeasuredTerm:
    """A line that added a single value without a graph to one with a graph, which led to the root of a call.

    Attributes
    ----------
    lines
        The lines of the addition, the innermost first. No call went through them with a graph for both.
    cuts
        What the value left the graph by.
    number
        Which of the values it is that the line adds up, from 0, in their order; -1: not known, or several are.
    """

    lines: tuple[TextLine, ...]
    cuts: tuple[MeasuredCut, ...]
    number: int = -1


@dataclass(frozen=True, slots=True)
class MeasuredLate:
    """An input of the call that failed, which required no grad yet when its root was computed from it.

    Attributes
    ----------
    input
        Its position among the inputs.
    used, told
        The lines of the first operation on the way to the root that was given it, and those that told it to require
        grad; the innermost first.
    """

    input: int
    used: tuple[TextLine, ...]
    told: tuple[TextLine, ...]


@dataclass(frozen=True, slots=True)
class PlainInput:
    """An argument of a module that could require grad, and does not.

    `position` is its place among the `positional` ones that were given, or None, where it was given by its `name`.
    """

    position: int | None
    name: str
    positional: int


@dataclass(frozen=True, slots=True)
class MeasuredHook:
    """A backward hook of the program's own that was registered while calls began, and that none has run.

    Attributes
    ----------
    by
        The method that registered it.
    lines, hook
        The lines that registered it, the innermost first, and the first line of its function.
    calls
        The n of calls that could have run it.
    why
        What became of the graph of what its module returned last before such a call: ``"grad_off"``, grad mode was
        off; ``"frozen"``, nothing that the module computed with required grad; ``"cut"``, something did, and its result
        does not; ``"packed"``, tensors with a graph are in an object, which torch does not look into; ``"late"``,
        it had been computed before the hook was registered; ``"uncalled"``, the module itself never ran. ``"tensor"``:
        the hook is a tensor's. Empty: it has a graph, and no call came to it.
    path
        What the module is called in the outermost one that was running: ``model.layer4``. Empty: it is that one.
    called
        The lines that called the outermost one.
    frozen
        Of "frozen": the lines that switched off a parameter of it.
    plain
        Of "frozen": what that outermost module was given that could require grad.
    elsewhere
        Whether the same line has registered the same function elsewhere, and it ran there.
    """

    by: str
    lines: tuple[TextLine, ...]
    hook: TextLine
    calls: tuple[int, ...]
    why: str = ""
    path: str = ""
    called: tuple[TextLine, ...] = ()
    frozen: tuple[TextLine, ...] = ()
    plain: PlainInput | None = None
    elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class TensorForm:
    """What a tensor is, without its values. Of what is no tensor, `other` is the name of its type."""

    dtype: str = ""
    shape: tuple[int, ...] = ()
    device: str = ""
    other: str = ""


@dataclass(frozen=True, slots=True)
class MeasuredUnpacked:
    """What hooks of the program's own for saved tensors gave back for the last node of a call that asked them.

    Attributes
    ----------
    call
        The n of the call.
    node
        The name of the node.
    given, returned
        What was packed, and what came back for it: the first that differ, where any of the node's do.
    pack, unpack
        The first lines of the two functions; None: a function of another's.
    pack_name, unpack_name
        Their names; empty: a lambda, or none is known.
    lines
        The lines that made the hooks, the innermost first.
    """

    call: int
    node: str
    given: TensorForm
    returned: TensorForm
    pack: TextLine | None = None
    unpack: TextLine | None = None
    pack_name: str = ""
    unpack_name: str = ""
    lines: tuple[TextLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Lineage:
    """What the root of the call that failed was made from, and all cuts of the program.

    What should be trained is what the optimizer has whose gradients were cleared last before the call; where none
    were, what all optimizers have.

    Attributes
    ----------
    call
        The n of the call that failed; None: none did.
    behind_root
        The cuts behind its root, the last one first.
    frozen
        Modules behind its root that should be trained and are frozen.
    cuts
        All cuts, in their order.
    zeros
        Nodes that let no gradient but zero pass.
    nonfinite
        The first step that made parameters something else than finite; None: none did, or it was not looked for.
    made
        The leaves that were alone behind the roots of calls.
    ends
        The last operations before single values with a graph from which nothing with a graph was computed, and at
        which no call began.
    terms
        The lines that added a constant to a loss.
    late
        The inputs of the call that were told too late to require grad.
    emptied
        Gradients that were gone before any step of their optimizer had used them.
    hooks
        Backward hooks that never ran.
    constants
        What the root was made of, as far as it has no graph.
    unpacked
        What hooks for saved tensors gave back, for the last calls that asked them.
    held_frozen
        Parameters that lines froze when an optimizer had been made to train them.
    joined
        Parameters that came into modules after an optimizer had been made of everything there.
    idle
        What optimizers hold, where none of it was used for the root; None: some was, or its root left a graph.
    """

    call: int | None
    behind_root: tuple[MeasuredCut, ...] = ()
    frozen: tuple[FrozenModule, ...] = ()
    cuts: tuple[MeasuredCut, ...] = ()
    zeros: tuple[MeasuredZeros, ...] = ()
    nonfinite: MeasuredNonFinite | None = None
    made: tuple[MeasuredLeaf, ...] = ()
    ends: tuple[MeasuredCut, ...] = ()
    terms: tuple[MeasuredTerm, ...] = ()
    late: tuple[MeasuredLate, ...] = ()
    emptied: tuple[MeasuredEmptied, ...] = ()
    hooks: tuple[MeasuredHook, ...] = ()
    constants: tuple[MeasuredConstant, ...] = ()
    unpacked: tuple[MeasuredUnpacked, ...] = ()
    held_frozen: tuple[MeasuredFrozen, ...] = ()
    joined: tuple[MeasuredJoined, ...] = ()
    idle: MeasuredIdle | None = None
