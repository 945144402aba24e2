"""Wrong backwards of custom Functions: the number, shape or device of their gradients, or no backward at all.

They are recognized by torch's message, which names the class, the graph of the call, and the text of the class.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from functools import cached_property

from graphwidget.diagnosis.findings.refusals.user_code import missing_methods
from graphwidget.diagnosis.findings.refusals.user_code.held_tensors import Held, held_by
from graphwidget.diagnosis.fixes.restore_graph import without_decorator
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.edits.text_edit import Edits
from graphwidget.diagnosis.source.pytorch.custom_functions import FunctionText, defined, functions
from graphwidget.diagnosis.wording import at, names, place_of, short, where
from graphwidget.model import BackwardCall, Finding, Fix, Kind, NodeFacts, Place, Record, torch_messages

__all__ = ["of_gradient", "of_no_backward", "of_once_differentiable"]

_NAMED = re.compile(r"[Ff]unction (\w+) returned")


@dataclass(frozen=True)
class _Case:
    """A call that failed in the backward of a custom Function, with what is known of that Function."""

    record: Record
    call: BackwardCall

    @property
    def message(self) -> str:
        return self.call.error or ""

    def number(self, pattern: str) -> int:
        """A number in the message; -1: there is none."""
        found = re.search(pattern, self.message)
        return int(found[1]) if found is not None else -1

    @cached_property
    def nodes(self) -> list[int]:
        """The nodes that may have failed: those with the name in the message, else all of custom Functions."""
        graph, named = self.call.graph, _NAMED.search(self.message)
        if graph is None:
            return []
        if named is not None:
            return [index for index in range(len(graph)) if graph.name_of(index) == named[1]]
        return [index for index in range(len(graph)) if graph.kind[index] == Kind.CUSTOM]

    @property
    def is_custom(self) -> bool:
        """Whether a custom Function failed, and not an operation of PyTorch."""
        graph = self.call.graph
        known = graph is not None and bool(self.nodes) and all(graph.kind[at] == Kind.CUSTOM for at in self.nodes)
        return known or self.function is not None

    @cached_property
    def name(self) -> str | None:
        """The name of the class; None: several are possible."""
        named = _NAMED.search(self.message)
        graph = self.call.graph
        nodes = {graph.name_of(index) for index in self.nodes} if graph is not None else set[str]()
        node = named[1] if named is not None else nodes.pop() if len(nodes) == 1 else None
        return node.removesuffix("Backward") if node is not None else None

    @cached_property
    def function(self) -> FunctionText | None:
        return defined(self.record, self.name) if self.name is not None else None

    @cached_property
    def arguments(self) -> tuple[int, ...]:
        """`NodeFacts.arguments` of the node; empty: unknown, or different among the nodes that may have failed."""
        facts = self.call.graph.facts if self.call.graph is not None else {}
        found = {facts.get(index, NodeFacts()).arguments for index in self.nodes}
        return found.pop() if len(found) == 1 else ()

    @cached_property
    def made_at(self) -> Place | None:
        """Where the Function was applied."""
        graph = self.call.graph
        places = {graph.place_of(index) for index in self.nodes} if graph is not None else set[Place | None]()
        return places.pop() if len(places) == 1 else None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs of `forward`; empty: unknown."""
        return (self.function.inputs if self.function is not None else None) or ()

    def input(self, position: int) -> str:
        """An input as a sentence names it."""
        return f"`{self.inputs[position]}`" if 0 <= position < len(self.inputs) else "one of its inputs"

    def held(self, position: int) -> Held | None:
        """What is in an input that is no tensor; None: nothing that is to train, or not known."""
        tensor = any(0 <= one == position for one in self.arguments)
        return held_by(self.record, self.call, self.function, self.made_at, position) if not tensor else None

    @property
    def back(self) -> str:
        """The backward as a sentence names it."""
        method = self.function.backward if self.function is not None else None
        return f"`{self.name}.{method.name if method else 'backward'}`" if self.name else "A custom Function's backward"

    @cached_property
    def returned(self) -> ast.Return | None:
        """The only statement that returns the gradients; None: there are several."""
        returns = self.function.returns if self.function is not None else []
        return returns[0] if len(returns) == 1 else None

    @property
    def place(self) -> Place | None:
        """The line that returns them, else that of the backward, else where the Function was applied."""
        if self.function is None:
            return self.made_at
        found = self.returned or self.function.backward or self.function.made
        return place_of(self.function.run, found.lineno)

    @property
    def line(self) -> str:
        """The line that returns them, as the beginning of a sentence."""
        if self.returned is None:
            return self.back
        return f"In {self.back}, {short(ast.unparse(self.returned))} ({where(self.place)})"

    @property
    def elements(self) -> list[ast.expr]:
        """The expressions of the gradients, if the only return statement lists them."""
        value = self.returned.value if self.returned is not None else None
        if isinstance(value, ast.Tuple):
            return [] if any(isinstance(one, ast.Starred) for one in value.elts) else value.elts
        return [] if value is None else [value]

    def returning(self, gradients: list[str]) -> Edits:
        """An edit that returns these gradients instead."""
        value = self.returned.value if self.returned is not None else None
        if value is None or self.function is None:
            return ()
        text, cell = self.function.run.source, self.function.run.cell
        return text_edit.replace_node(cell, text, value, ", ".join(gradients))

    def finding(self, headline: str, text: str, *fixes: Fix) -> Finding:
        graph, nodes = self.call.graph, self.nodes
        uid = graph.uid[nodes[0]] if graph is not None and len(nodes) == 1 else None
        return Finding(
            "refused",
            "error",
            text,
            headline,
            self.call.n,
            node=f"{self.name}Backward" if self.name else "",
            node_uid=uid,
            made_at=self.place,
            names=(self.name,) if self.name else (),
            uids=(uid,) if uid is not None else (),
            fixes=fixes,
        )

    def fix(self, id: str, text: str, edits: Edits = (), price: str = "") -> Fix:
        return Fix(id, text, False, at(self.place), price, edits=edits)


def of_gradient(record: Record, call: BackwardCall) -> Finding | None:
    """A backward returned gradients that PyTorch does not accept for the inputs of `forward`.

    None: the backward may be one of PyTorch's own.
    """
    case = _Case(record, call)
    if not case.is_custom:
        return None
    if torch_messages.says(case.message, torch_messages.GRADIENTS_COUNTED):
        return _counted(case)
    if torch_messages.says(case.message, torch_messages.GRADIENT_OF_NO_TENSOR):
        return _of_no_tensor(case)
    if torch_messages.says(case.message, torch_messages.NO_GRADIENT_TYPE):
        return _of_another_type(case)
    return _unlike_its_input(case)


# ------------------------------------------------------------------ the number of gradients


def _counted(case: _Case) -> Finding:
    wanted, got = case.number(r"expected (\d+)"), case.number(r"got (\d+)")
    known = case.inputs if len(case.inputs) == wanted else ()
    held = [one for at_ in range(wanted) for one in [case.held(at_)] if one and got == wanted - 1 + len(one.paths)]
    if len(held) == 1:
        return _of_held(case, held[0], f"{case.line} returns {_gradients(got)} for {wanted} inputs.", unpacked=True)
    which = f": {names(known, most=6)}" if known else ""
    text = (
        f"{case.line} returns {_gradients(got)}. PyTorch wants one for each of the {wanted} inputs of `forward`, in "
        f"their order{which}. `None` stands for one that needs none, such as a number."
    )
    return case.finding(
        f"{case.back} returns {_gradients(got)} for {wanted} inputs.", text, _all_gradients(case, wanted, got, known)
    )


def _gradients(count: int) -> str:
    return f"{count} gradient{'s' * (count != 1)}"


def _all_gradients(case: _Case, wanted: int, got: int, known: tuple[str, ...]) -> Fix:
    """Return None for the other inputs, if as many gradients are returned as inputs need one; else advice."""
    needing = [one for one in case.arguments if one >= 0]
    if case.arguments and len(needing) == got == len(case.elements):
        given = dict(zip(needing, map(ast.unparse, case.elements)))
        new = [given.get(position, "None") for position in range(wanted)]
        others = tuple(name for position, name in enumerate(known) if position not in given)
        rest = names(others) or "the inputs that need none"
        price = f"{rest} then never gets a gradient, also where one is needed." if -1 in case.arguments else ""
        sentence = f"Return None for {rest}: `{', '.join(new)}`."
        return case.fix("return_all_gradients", sentence, case.returning(new), price)
    if got > wanted:
        return case.fix("return_all_gradients", f"Return {_gradients(wanted)}: `forward` has no more inputs.")
    need = names(tuple(known[one] for one in needing)) if known else ""
    needed = f" {need} need{'s' * (len(needing) == 1)} one." if need else ""
    return case.fix("return_all_gradients", f"Return the gradient of every input, computed from the formula.{needed}")


def _of_no_tensor(case: _Case) -> Finding:
    position = case.number(r"at position (\d+)") - 1
    which, elements = case.input(position), case.elements
    held = case.held(position)
    if held is not None:
        return _of_held(case, held, f"{case.line} returns a gradient at position {position + 1}, for {which}.")
    edits: Edits = ()
    if 0 <= position < len(elements) > 1:
        edits = case.returning(["None" if i == position else ast.unparse(one) for i, one in enumerate(elements)])
    return case.finding(
        f"{case.back} returns a gradient for {which}, which is no tensor.",
        f"{case.line} returns a gradient at position {position + 1}. What `forward` was given there, {which}, was no "
        "tensor: it has no gradient.",
        case.fix("return_all_gradients", f"Return None at position {position + 1}.", edits),
    )


def _of_held(case: _Case, held: Held, line: str, *, unpacked: bool = False) -> Finding:
    """What `forward` was given is no tensor, and there are tensors in it that are to train."""
    which, elements = case.input(held.position), case.elements
    gradient = elements[held.position] if held.position < len(elements) == len(case.inputs) else None
    found = case.finding(
        f"{case.back} returns {'gradients' if unpacked else 'a gradient'} for {which}, which is no tensor.",
        f"{line} {held.text}",
        *held.fixes(gradient, unpacked),
    )
    return replace(found, names=(*found.names, held.given, *case.inputs[held.position : held.position + 1]))


def _of_another_type(case: _Case) -> Finding:
    found = re.search(r"\(got ([\w.]+)\)", case.message)
    got = f"`{found[1]}`" if found is not None else "something else"
    return case.finding(
        f"{case.back} returns {got} as a gradient.",
        f"{case.line} returns {got} where PyTorch takes a tensor, or None for an input that needs no gradient.",
        case.fix("matching_gradient", "Return a tensor of the shape of the input, for example by `torch.full_like`."),
    )


# ------------------------------------------------------------------ their shape and device


def _unlike_its_input(case: _Case) -> Finding:
    index = case.number(r"at index (\d+)")
    position = case.arguments[index] if 0 <= index < len(case.arguments) else -1
    which = case.input(position) if position >= 0 else f"input {index + 1}"
    shape = re.search(r"got (\[[\d, ]*\]) but expected shape compatible with (\[[\d, ]*\])", case.message)
    device = re.search(r"expected device (\S+) but got (\S+)", case.message)
    if shape is not None:
        what, got, wanted = "shape", shape[1], shape[2]
    else:
        what, got, wanted = "device", *((device[2], device[1]) if device is not None else ("another", "its own"))
    whole = len(case.elements) == len(case.inputs) and 0 <= position < len(case.elements)
    one = short(ast.unparse(case.elements[position])) if whole else "the gradient"
    return case.finding(
        f"{case.back} returns a gradient of another {what} for {which}.",
        f"{case.line} returns {one} for {which}: its {what} is {got}. That of {which} is {wanted}, and a gradient has "
        f"the {what} of what it belongs to.",
        case.fix("matching_gradient", _advice(what, got, wanted, which)),
    )


def _advice(what: str, got: str, wanted: str, which: str) -> str:
    if what == "device":
        return f"Compute it on {wanted}, or move it there: `.to({which.strip('`')}.device)`."
    if re.findall(r"\d+", got) == re.findall(r"\d+", wanted)[::-1]:
        return f"It is transposed: {got} for {wanted}. See the order of the factors in its formula, or transpose it."
    return f"Make it {wanted}: sum over what {which} was repeated for, and see that each stands at its input's place."


# ------------------------------------------------------------------ no backward, and second derivatives


def of_no_backward(record: Record, call: BackwardCall) -> Finding:
    """A Function that defines no backward, or one where PyTorch does not find it."""
    without = [one for one in functions(record) if one.backward is None]
    ran = {call.graph.name_of(index) for index in range(len(call.graph))} if call.graph is not None else set[str]()
    found = [one for one in without if f"{one.name}Backward" in ran]
    one = found[0] if len(found) == 1 else None
    shown, line = (f"`{one.name}`", one.made.lineno) if one is not None else ("A custom Function", 0)
    place = place_of(one.run, line) if one is not None else None
    spot = f" ({where(place)})" if place is not None else ""
    meant = missing_methods.in_class(record, one.name, "backward", "vjp") if one is not None else None
    text = f"{shown}{spot} says how its values are computed, and not their gradient: it has no `backward`."
    advice = (
        "Write a static method `backward(ctx, ...)` that returns one gradient for each input of `forward`; or, if no "
        "gradient should come through it, give it `.detach()`ed inputs."
    )
    return Finding(
        "refused",
        "error",
        f"{text} {missing_methods.told(meant)}" if meant is not None else text,
        f"{shown} has no `backward`.",
        call.n,
        node=f"{one.name}Backward" if one is not None else "",
        made_at=missing_methods.place_in(meant) if meant is not None else place,
        names=(one.name,) if one is not None else (),
        fixes=(
            missing_methods.fix_of(meant, "define_backward")
            if meant is not None
            else Fix("define_backward", advice, False, at(place)),
        ),
    )


def of_once_differentiable(record: Record, call: BackwardCall) -> Finding:
    """A gradient from a ``@once_differentiable`` backward was differentiated again."""
    earlier = [one for one in record.calls if one.n < call.n and one.create_graph and one.graph is not None]
    ran = {name for one in earlier for name in (one.graph.names if one.graph is not None else ())}
    found = [one for one in functions(record) if one.once is not None and f"{one.name}Backward" in ran]
    one = found[0] if len(found) == 1 else None
    shown = names(tuple(f"{each.name}.backward" for each in found)) or "A custom Function's backward"
    place, fix = _differentiable(one) if one is not None else (None, None)
    came = ""
    if one is not None and len(earlier) == 1 and where(earlier[0].place):
        came = f" {short(earlier[0].place.source)} ({where(earlier[0].place)}) got a gradient from it."
    spot = f" ({where(place)})" if place is not None else ""
    return Finding(
        "refused",
        "error",
        f"{shown} {'is' if len(found) < 2 else 'are'} marked `@once_differentiable`{spot}: no derivative can be taken "
        f"of what it returns.{came} This call differentiates that once more.",
        f"{shown} can be differentiated only once.",
        call.n,
        node=call.failed_node or "",
        node_uid=call.failed_uid,
        made_at=place,
        fixes=(fix,) if fix is not None else (),
        names=tuple(each.name for each in found),
    )


def _differentiable(one: FunctionText) -> tuple[Place | None, Fix | None]:
    """The decorator's line, and the backward without it."""
    method, decorator = one.backward, one.once
    without = without_decorator(one.run.cell, one.run.source, method, decorator) if method and decorator else None
    if without is None:
        return None, None
    line, edits = without
    place = place_of(one.run, line)
    sentence = (
        f"Drop `@{decorator}` if all in that backward is computed by differentiable operations, from "
        "`ctx.saved_tensors` and the gradients that it gets. Else write its derivative as a Function of its own."
    )
    return place, Fix("differentiable_backward", sentence, False, at(place), edits=edits)
