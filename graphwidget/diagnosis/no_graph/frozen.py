"""Frozen modules and tensors behind a tensor without a graph: what froze them, and whether this is the mistake."""

from __future__ import annotations

import ast

from graphwidget.diagnosis.no_graph.cause import Cause
from graphwidget.diagnosis.no_graph.leaves.frozen_by_name import frozen_by_name
from graphwidget.diagnosis.no_graph.origins import Origins
from graphwidget.diagnosis.no_graph.values import Spot
from graphwidget.diagnosis.source import syntax as source
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.diagnosis.source.pytorch.optimizers import optimized
from graphwidget.diagnosis.wording import at as line_of
from graphwidget.diagnosis.wording import names as quoted
from graphwidget.diagnosis.wording import place_of, where
from graphwidget.model import CellRun, Fix

__all__ = ["all_in_sight", "frozen", "frozen_modules"]


def frozen_modules(origins: Origins, names: list[str]) -> Cause:
    """The cause that the root was computed by frozen modules.

    One that has no parameters, such as a loss, is not to blame where another has some.
    """
    names = [one for one in names if not _without_parameters(origins, one)] or all_in_sight(origins) or names
    found = {name: line for name in names if (line := origins.values.frozen_by(name)) is not None}
    lines = list(found.values())
    name = next(iter(found), names[0])
    if any(_without_parameters(origins, one) for one in names):
        if trained := _trained_in_sight(origins):
            shown, have = quoted(trained), "has" if len(trained) == 1 else "have"
            text = (
                f"{shown} {have} parameters that require grad: the loss was computed without them, or left their graph."
            )
            words = (
                "See which modules `forward` calls: what it does not call has no part in the loss, and trains nothing."
            )
            return Cause(text, Fix("find_the_cut", words, False), None)
        words = "Make each tensor that should train an `nn.Parameter`: buffers and tensors in a list are no parameters."
        return Cause(f"`{name}` has no parameter that requires grad.", Fix("unfreeze", words, False), None)
    if not lines and (by_name := _by_name(origins)) is not None:
        return by_name
    if not lines:
        text = f"No parameter of `{name}` requires grad."
        return Cause(text, Fix("unfreeze", f"Let what should train in `{name}` require grad.", False), None)
    run, one, outer = lines[0]
    alone = len(names) == 1 and sum(1 for _ in origins.values.freezing()) == 1
    return _unfreeze(
        origins, run, one, alone and origins.values.freezes_all(one, outer), f"no parameter of `{name}` requires grad."
    )


def _by_name(origins: Origins) -> Cause | None:
    """``p.requires_grad = name.startswith("fc")``: a line that is no plain one which freezes."""
    for run in reversed(origins.values.runs):
        for node in source.nodes_of(run.source):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(isinstance(one, ast.Attribute) and one.attr == "requires_grad" for one in targets):
                assert isinstance(node, ast.Assign)
                if (found := frozen_by_name(origins.values.scene.frozen, run, node)) is not None:
                    return found
    return None


def all_in_sight(origins: Origins) -> list[str]:
    """The names of all modules that the frames of the user's own code hold, if no parameter of any requires grad."""
    values = [(name, one) for sight in origins.values.scene.sights for name, one in sight.values.items()]
    modules = {name: one for name, one in values if one.kind == "module" and one.requires_grad is not None}
    return sorted(modules) if not any(one.requires_grad for one in modules.values()) else []


def _trained_in_sight(origins: Origins) -> tuple[str, ...]:
    """Of the modules that the frames of the user's own code hold, those with a parameter that requires grad."""
    values = [(name, one) for sight in origins.values.scene.sights for name, one in sight.values.items()]
    return tuple(dict.fromkeys(name for name, one in values if one.kind == "module" and one.requires_grad))


def _without_parameters(origins: Origins, name: str) -> bool:
    values = [sight.values[name] for sight in origins.values.scene.sights if name in sight.values]
    return any(one.kind == "module" and one.requires_grad is None for one in values)


def _unfreeze(origins: Origins, run: CellRun, one: ast.stmt, works: bool, what: str) -> Cause:
    """Offer to unfreeze it; if the program reads a gradient of an input, also say how that input can require grad."""
    if (by_name := frozen_by_name(origins.values.scene.frozen, run, one)) is not None:
        return by_name
    place, text = place_of(run, one.lineno), ast.unparse(one)
    edits = text_edit.replace_in(run.cell, run.source, one, "False", "True")
    asked, stepped = _gradients_of_inputs(origins), optimized(list(origins.values.runs))
    outer = source.statements_at(run.source, one.lineno)[0]
    works = works and (not stepped or bool(source.names_in(outer) & stepped))
    sentence = f"Let what should train require grad: change `{text}`."
    if asked:
        sentence = f"Let {quoted(asked)} require grad before the loss is computed, if that gradient is wanted. " + (
            f"Or, if what was frozen should train, change `{text}`."
        )
    fix = Fix("unfreeze", sentence, works and not asked, line_of(place), edits=() if asked else edits)
    return Cause(f"`{text}` ({where(place)}): {what}", fix, place)


def _gradients_of_inputs(origins: Origins) -> tuple[str, ...]:
    """Tensors of which the cells read a `.grad`, or that an optimizer steps, and measured not to require grad.

    Then the program wants the gradient of an input.
    """
    values = {name: one for sight in origins.values.scene.sights for name, one in sight.values.items()}
    trees = [tree for run in origins.values.runs if (tree := source.parse(run.source)) is not None]
    read = (n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == "grad")
    stepped = sorted(optimized(list(origins.values.runs)))
    found = dict.fromkeys([*(ast.unparse(node.value) for node in read), *stepped])
    plain = (name for name in found if name in values and values[name].kind == "tensor")
    return tuple(name for name in plain if not values[name].requires_grad and values[name].type_name != "Parameter")


def frozen(origins: Origins, root: ast.expr, spot: Spot, made_of: list[str]) -> Cause | None:
    """No line cut the graph: a tensor behind the root does not require grad, and no other surely does."""
    if origins.has_graph(root, spot):
        return None
    what = f"nothing that `{made_of[0]}` was made from requires grad."
    alone = sum(1 for _ in origins.values.freezing()) == 1
    for run, one, outer in origins.values.freezing():
        named = source.names_in(outer) | ({outer.name} if isinstance(outer, ast.FunctionDef) else set())
        meant = named.intersection(made_of)
        if meant and not any(origins.values.modules.get(name) for name in meant):
            known = origins.goes_back_to_grad(root, spot) is False
            doubt = "" if known else "what it freezes does not require grad, and nothing else is known to."
            return _unfreeze(origins, run, one, alone and origins.values.freezes_all(one, outer), doubt or what)
    for where_made, node, _ in origins.back(root, spot):
        if isinstance(node, ast.stmt) and "requires_grad=False" in ast.unparse(source.given(node)):
            return _unfreeze(origins, origins.values.runs[where_made.at], node, False, "it does not require grad.")
    return None
