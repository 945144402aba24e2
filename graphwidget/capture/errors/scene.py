"""The scene of an error: the grad mode, and the values of the variables in the failing lines.

It is measured when the error is raised, as plain data. No user code runs, and nothing is kept alive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any, Literal

import torch

from graphwidget import torch_internals as ti
from graphwidget.capture.errors import applied, copied, library_modules, modules, trainable
from graphwidget.capture.lines.book import Book
from graphwidget.capture.owners import reading
from graphwidget.model import Scene, Sight, Value, torch_messages

__all__ = ["of_call", "of_error"]

MOST_PATHS = 600  # paths looked up in one frame
MOST_FRAMES = 20

MOST_STEPS = 12  # steps of a path: `net.layers[i].weight` has four

_KEY = r"\d+|[A-Za-z_]\w*|'[^'\]\n]*'|\"[^\"'\]\n]*\""
_PATH = re.compile(rf"(?<![\w.'\"])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[(?:{_KEY})\])*")
_STEP = re.compile(r"\w+|\[[^\]]*\]")
_SEQUENCES, _PLAIN = (tuple, list, dict), (int, float, bool, str)
_CONTAINERS = (
    *(torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict),
    *(torch.nn.ParameterList, torch.nn.ParameterDict),
)
_DECORATED = "torch/utils/_contextlib.py"  # a frame of this file runs a function that a grad mode decorates
_AUTOGRAD = "torch/autograd/__init__.py"
_ROOTS = {"backward": "tensors", "grad": "outputs"}  # the arguments of its functions that are roots


def of_call(frame: FrameType | None, error: BaseException, book: Book, texts: Sequence[str]) -> Scene:
    """Measure the scene of a call that has just raised, from its frame outwards.

    Parameters
    ----------
    texts
        Sources of the cells, the last one first. In the notebook's own frame, all names in them are looked up.
    """
    frames = list(_outwards(frame))
    inner = list(_inwards(error.__traceback__))
    facts = modules.facts(_message(error), [one for one, _ in inner], _objects([one for one, _ in frames], book))
    return Scene(
        torch.is_grad_enabled(),
        tuple(_sights(frames, book, texts)),
        _raised_in(error.__traceback__),
        inside=tuple(_sights(_of_engine(inner)[::-1], book, ())),
        inference_mode=torch.is_inference_mode_enabled(),
        **facts,
    )


def _of_engine(frames: Sequence[tuple[FrameType, int]]) -> Sequence[tuple[FrameType, int]]:
    """Return the frames that the engine has called, outermost first."""
    calls = [at for at, (frame, _) in enumerate(frames) if frame.f_code.co_name == ti.ENGINE_CALL]
    return frames[calls[0] + 1 :] if calls else ()


def _raised_in(traceback: TracebackType | None) -> Literal["engine", "python", "call"]:
    """Return what raised the error of a call: the engine, Python code that it ran, or an engine call in that code."""
    names = []
    while traceback is not None:
        names.append(traceback.tb_frame.f_code.co_name)
        traceback = traceback.tb_next
    calls = [at for at, name in enumerate(names) if name == ti.ENGINE_CALL]
    if len(calls) > 1:
        return "call"
    return "python" if calls and calls[0] < len(names) - 1 else "engine"


def of_error(error: BaseException, book: Book, texts: Sequence[str]) -> Scene:
    """Measure the scene of an error that has ended a cell. The grad mode at the error is no longer known."""
    found = list(_inwards(error.__traceback__))
    frames = [one for one, _ in found]
    objects = _objects(frames[::-1], book)
    facts = modules.facts(_message(error), frames, objects)
    own = [at for at, frame in enumerate(frames) if book.scope(frame.f_code) is not None]
    is_copy = torch_messages.says(_message(error), torch_messages.COPIED)
    return Scene(
        None,
        tuple(_sights(found[::-1], book, texts)),
        refused=_refused(_message(error), frames),
        within=library_modules.within(found[own[-1] + 1 :], objects) if own else None,
        copied=copied.tensors(frames[own[-1] :]) if own and is_copy else (),
        applied=applied.of_frames(frames[own[-1] + 1 :], book) if own else None,
        **facts,
    )


def _refused(message: str, frames: Sequence[FrameType]) -> Value | None:
    """Return the root that a call refused because it is no single number; None: unknown, or another error."""
    if not torch_messages.says(message, torch_messages.NOT_SCALAR):
        return None
    given: Any = None
    for frame in reversed(frames):
        name = _ROOTS.get(frame.f_code.co_name)
        if name is not None and _is_of(frame, _AUTOGRAD):
            given = dict(reading.locals_of(frame)).get(name)
            break
    roots = given if type(given) in (list, tuple) else (given,)
    with ti.quiet():
        several = [one for one in roots if ti.is_tensor(one) and ti.count_of(one) != 1]
        return _value(several[0], {}) if len(several) == 1 else None


def _message(error: BaseException) -> str:
    return BaseException.__str__(error)


def _inwards(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno or 0
        traceback = traceback.tb_next


def _objects(frames: Sequence[FrameType], book: Book) -> dict[str, Any]:
    """Return the variables of the cells' frames: the globals first, as they last; then locals, innermost first."""
    own = [frame for frame in frames if book.scope(frame.f_code) is not None]
    found = dict(own[0].f_globals) if own else {}
    for frame in own:
        if frame.f_code.co_flags & reading.CO_OPTIMIZED:
            found.update({name: value for name, value in reading.locals_of(frame) if name not in found})
    return found


def _outwards(frame: FrameType | None) -> Iterator[tuple[FrameType, int]]:
    while frame is not None:
        yield frame, frame.f_lineno or 0
        frame = frame.f_back


def _sights(frames: Sequence[tuple[FrameType, int]], book: Book, texts: Sequence[str]) -> Iterator[Sight]:
    """Yield one sight for each frame of a cell, the innermost first."""
    users = {id(frame) for frame, _ in book.own_among([frame for frame, _ in frames])}
    cells = [at for at, (frame, _) in enumerate(frames) if id(frame) in users][:MOST_FRAMES]
    for at, following in zip(cells, [*cells[1:], len(frames)]):
        frame, line = frames[at]
        scope = book.scope(frame.f_code)
        if scope is None:
            continue
        inside = frame.f_code.co_flags & reading.CO_OPTIMIZED
        place = book.place(scope.base + line, -1, -1)
        names = _names([scope.cell.source, *(() if inside else texts)])
        own = dict(reading.locals_of(frame))
        variables = {**frame.f_globals, **own}
        between = [one for one, _ in frames[at + 1 : following]]
        local = frozenset(own) if inside else frozenset[str]()
        objects = {path: found for path in names if (found := _look_up(variables, path)) is not None}
        others = _others(variables, names, objects)
        values, forward_of = _values(objects), _forward_of(between)
        yield Sight(place, bool(inside), values, _decorators(between), forward_of, local, others)


def _names(texts: Sequence[str]) -> dict[str, None]:
    """Return the paths in some texts and all their prefixes: ``net.fc`` and ``net`` for ``net.fc.weight``."""
    found: dict[str, None] = {}
    for text in texts:
        for path in _PATH.findall(text):
            path = path.replace('"', "'")
            ends = [step.end() for step in _STEP.finditer(path)]
            found.update(dict.fromkeys(path[:end] for end in ends[:MOST_STEPS]))
            if len(found) > MOST_PATHS:
                return found
    return found


def _decorators(frames: Sequence[FrameType]) -> tuple[str, ...]:
    """Return the grad modes that decorators switched on around the call of a function: ``no_grad``."""
    found = []
    for frame in frames:
        if _is_of(frame, _DECORATED):
            factory = dict(reading.locals_of(frame)).get("ctx_factory")
            owner = getattr(factory, "__self__", None)
            if owner is not None:
                found.append(type(owner).__name__)
    return tuple(found)


def _forward_of(frames: Sequence[FrameType]) -> str:
    """Return the name of the custom Function that was applied in one of these frames, else an empty text."""
    return next((applied.name_of(cls) for frame in frames if (cls := applied.applied_by(frame)) is not None), "")


def _is_of(frame: FrameType, file: str) -> bool:
    return frame.f_code.co_filename.replace("\\", "/").endswith(file)


def _others(variables: Mapping[str, Any], names: Mapping[str, None], objects: Mapping[str, Any]) -> dict[str, str]:
    """Return what the variables are that hold plain objects of Python's own."""
    found = dict.fromkeys((name for name in names if name in variables and variables[name] is None), "None")
    for path, one in objects.items():
        if type(one) in _SEQUENCES:
            found[path] = f"a {type(one).__name__} of {len(one)}"
        elif type(one) in _PLAIN:
            found[path] = f"{'an' if type(one) is int else 'a'} {type(one).__name__}"
    return found


def _values(objects: Mapping[str, Any]) -> dict[str, Value]:
    tensors = {id(one): path for path, one in objects.items() if ti.is_tensor(one)}
    values: dict[str, Value] = {}
    with ti.quiet():
        for path, one in objects.items():
            value = _value(one, tensors)
            if value is not None:
                values[path] = value
    return values


def _look_up(variables: Mapping[str, Any], path: str) -> Any:
    first, *rest = _STEP.findall(path)
    found = variables.get(first)
    for step in rest:
        if found is None or ti.is_tensor(found):
            return None
        found = _element(found, _key(variables, step[1:-1])) if step.startswith("[") else reading.attribute(found, step)
    return found


def _key(variables: Mapping[str, Any], text: str) -> Any:
    """Return what stands in brackets: a number, a quoted text, or what a variable holds."""
    if text.isdecimal():
        return int(text)
    return text[1:-1] if text.startswith("'") else variables.get(text)


def _element(holder: Any, key: Any) -> Any:
    """Return an element of a list, a tuple, a dict, or one of torch's containers; None for other objects and keys."""
    kind = type(holder)
    if type(key) not in (int, str):
        return None
    if kind in (list, tuple):
        return holder[key] if type(key) is int and -len(holder) <= key < len(holder) else None
    if kind is dict:
        return next((one for known, one in holder.items() if type(known) is type(key) and known == key), None)
    if kind not in _CONTAINERS:
        return None
    parts: dict[Any, Any] = {}
    for registry in ("_modules", "_parameters"):
        parts.update(reading.attribute(holder, registry) or {})
    return parts.get(str(key if type(key) is str or key >= 0 else key + len(parts)))


def _value(one: Any, named: Mapping[int, str]) -> Value | None:
    """Return the description of a tensor, a module, or a `Function` of the user's; None for other objects."""
    cls = type(one)
    if ti.is_tensor(one):
        origin = ti.base(one) if ti.is_view(one) else None
        requires = ti.requires_grad(one)
        node = ti.history(one, asked=False)[0]
        return Value(
            "tensor",
            cls.__name__,
            requires,
            leaf=True if not requires else None if ti.maybe_stale_view(one) else ti.is_leaf(one),
            view_of=None if origin is None else named.get(id(origin), ""),
            dtype=ti.dtype_name(one),
            shape=ti.shape_of(one),
            number=-1 if node is None else ti.number_of(node),
            mapped=ti.is_mapped(one),
        )
    if issubclass(cls, torch.nn.Module):
        return Value("module", cls.__name__, trainable.modules({"one": one}).get("one"))
    if issubclass(cls, type) and torch.autograd.Function in reading.mro_of(one):
        return Value("function", type.__dict__["__name__"].__get__(one), None)
    return None
