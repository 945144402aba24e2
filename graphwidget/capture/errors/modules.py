"""What an error's message does not name and its frames still know: modules, parameters by number, inference tensors.

It is measured only for the errors whose message asks for it. No user code runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import FrameType, FunctionType, ModuleType
from typing import Any

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.errors import checkpoints, inside_functions, trainable
from graphwidget.capture.owners import reading
from graphwidget.model import RunningModule, torch_messages

__all__ = ["facts", "named_modules"]

MOST_MODULES = 5000  # modules visited for one error
MOST_NAMES = 200

_HOOKS = torch_messages.HOOKED_VIEW_WRITTEN
_REPLICAS = (*torch_messages.NOT_REDUCED, *torch_messages.READY_TWICE)
_INFERENCE = ("nference",)
_NO_TENSOR = (*torch_messages.GRADIENT_OF_NO_TENSOR, *torch_messages.GRADIENTS_COUNTED)
_CHECKPOINT = (*torch_messages.CHECKPOINT_METADATA, *torch_messages.CHECKPOINT_COUNT)


def facts(message: str, frames: Sequence[FrameType], objects: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `Scene` that its error's message asks for.

    Parameters
    ----------
    message
        Of the error.
    frames
        All frames of its traceback, innermost last.
    objects
        The variables of the user's frames, by name; the innermost frame's come first.
    """
    found: dict[str, Any] = {}
    with ti.quiet():
        if torch_messages.says(message, _HOOKS):
            found["hooked"] = tuple(_hooked(objects))
            found["running"] = tuple(_running(frames, objects))
        if torch_messages.says(message, _REPLICAS):
            found["parameters"] = _numbered_parameters(frames, objects)
        if torch_messages.says(message, _INFERENCE):
            found["inference"] = tuple(_inference_tensors(objects))
        if torch_messages.says(message, _NO_TENSOR):
            found["trainable"] = trainable.leaves(objects)
        if torch_messages.says(message, torch_messages.NO_GRAD):
            found["frozen"] = trainable.frozen(objects)
        if torch_messages.says(message, torch_messages.COPIED):
            found["computed"] = tuple(_computed_tensors(objects))
        if torch_messages.says(message, _CHECKPOINT):
            found["checkpointed"] = checkpoints.function(frames)
            found["recomputed"] = checkpoints.difference(frames)
        if torch_messages.says(message, torch_messages.UNUSED):
            found["inside_functions"] = inside_functions.uses(frames)
    return found


# ------------------------------------------------------------------ modules by name


def named_modules(objects: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the modules that variables hold, and all modules inside them, with their paths; each module once."""
    seen: set[int] = set()
    for name, value in objects.items():
        stack = [(name, value)] if issubclass(type(value), torch.nn.Module) else []
        while stack and len(seen) < MOST_MODULES:
            path, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield path, module
            inside = reading.own_attributes(module).get("_modules") or {}
            parts = [(_inner(path, str(key)), one) for key, one in inside.items() if one is not None]
            stack.extend(reversed(parts))


def _inner(path: str, key: str) -> str:
    """Return the path of a part: ``net[0]`` for the part "0", ``net.fc`` for "fc"."""
    return f"{path}[{key}]" if key.isdecimal() else f"{path}.{key}"


def _running(frames: Sequence[FrameType], objects: Mapping[str, Any]) -> Iterator[RunningModule]:
    """Yield the modules whose `forward` was running, innermost first."""
    paths = {id(module): path for path, module in named_modules(objects)}
    for frame in reversed(frames):
        module = dict(reading.locals_of(frame)).get("self")
        if frame.f_code.co_name == "forward" and issubclass(type(module), torch.nn.Module):
            inplace = reading.own_attributes(module).get("inplace") is True
            yield RunningModule(paths.get(id(module), ""), type(module).__name__, inplace)


def _hooked(objects: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of the modules that have full backward hooks."""
    for path, module in named_modules(objects):
        if ti.has_full_backward_hook(reading.own_attributes(module)):
            yield path


# ------------------------------------------------------------------ parameters and tensors


def _numbered_parameters(frames: Sequence[FrameType], objects: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parameters of the DistributedDataParallel as its reducer numbers them; empty if that is not certain.

    Its numbers count the parameters that require grad, each once. It leaves out those that it was told to ignore.
    """
    selves = (dict(reading.locals_of(frame)).get("self") for frame in reversed(frames))
    known = [one for one in selves if _is_replica(one)]
    known = known[:1] or list({id(one): one for _, one in named_modules(objects) if _is_replica(one)}.values())
    if len(known) != 1 or reading.own_attributes(known[0]).get("parameters_to_ignore"):
        return ()
    outer = known[0]
    module = (reading.own_attributes(outer).get("_modules") or {}).get("module")
    own = next((path for path, one in named_modules(objects) if one is outer), "")
    found: dict[int, str] = {}
    for path, inside in named_modules({f"{own}.module" if own else "module": module}):
        for key, one in (reading.own_attributes(inside).get("_parameters") or {}).items():
            if one is not None and ti.requires_grad(one):
                found.setdefault(id(one), _inner(path, str(key)))
    return tuple(found.values())


def _is_replica(one: Any) -> bool:
    return type(one).__name__ == "DistributedDataParallel" and issubclass(type(one), torch.nn.Module)


def _inference_tensors(objects: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of inference tensors among variables, in the modules that they hold, and in their attributes."""
    seen: set[int] = set()
    named = [(name, value) for name, value in objects.items() if ti.is_tensor(value)]
    for path, module in named_modules(objects):
        own = reading.own_attributes(module)
        for store in ("_parameters", "_buffers"):
            named += [(_inner(path, str(key)), one) for key, one in (own.get(store) or {}).items() if one is not None]
        named += _kept_in(path, module)
    for name, value in objects.items():
        if not isinstance(value, (type, ModuleType, FunctionType)):
            named += _kept_in(name, value)
    for path, one in named:
        if id(one) not in seen and len(seen) < MOST_NAMES and torch.is_inference(one):
            seen.add(id(one))
            yield path


def _kept_in(path: str, owner: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors that are attributes of an object, or elements of lists and dicts among its attributes."""
    for key, value in islice(reading.own_attributes(owner).items(), MOST_NAMES):
        inside: list[tuple[str, Any]] = [(f"{path}.{key}", value)]
        if type(value) in (list, tuple):
            inside = [(f"{path}.{key}[{at}]", one) for at, one in enumerate(value[:MOST_NAMES])]
        elif type(value) is dict:
            inside = [
                (f"{path}.{key}[{name!r}]", one)
                for name, one in islice(value.items(), MOST_NAMES)
                if type(name) in (str, int)
            ]
        yield from ((name, one) for name, one in inside if ti.is_tensor(one))


def _computed_tensors(objects: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names under which objects keep tensors that were computed: as attributes, or in lists and dicts."""
    for start in reversed(list(objects)):  # locals first: an object has a name in the line that failed
        plain = () if isinstance(objects[start], (type, ModuleType, FunctionType)) else ((start, objects[start]),)
        for path, owner in dict([*plain, *named_modules({start: objects[start]})]).items():
            for name, one in _kept_in(path, owner):
                private = name.removeprefix(path).startswith("._")
                if not private and ti.requires_grad(one) and not ti.is_leaf(one):
                    yield name
