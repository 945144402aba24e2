"""Which line modified a tensor in place.

PyTorch counts in-place modifications in a tensor's `_version`. The tensors that the user can name are
watched through weak references, and their versions compared around the lines of cells that may write:

* Lines that look like writing (`x += …`, `x[i] = …`, `x.add_(…)`, `opt.step()`, `out=`) are compared, the
  tensors named in them first; lines that only call something (`loss = train(batch)`) are compared, too.
* A line that has proved harmless some times is left out until the cell ends (and then gets one more look in the
  next). A write by a line that was left out is found at the next comparison; its line is then unknown,
  and those that could have been it are compared from then on.
* Optimizers report their steps themselves, wherever they are called from.

Nothing is kept alive and nothing here runs code of the user's.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from operator import ne
from types import FrameType
from typing import Any, NamedTuple

from graphwidget.capture import reading
from graphwidget.capture import torch_internals as internals
from graphwidget.capture.cells import Book, Scope
from graphwidget.capture.owners import Search
from graphwidget.model import Place, Write

__all__ = ["Statement", "Writes", "statements"]

MAX_WATCHED = 1000  # tensors compared around a line, about 0.1 µs each
MAX_WRITES = 512  # writes remembered
HARMLESS = 8  # times that a line which only calls something is compared before it is left out
HARMLESS_WRITER = 32  # the same for a line that looks like writing
MAX_CELLS = 1000  # cells whose statements are kept
MAX_OPTIMIZERS = 100  # whose usual steps are remembered
MAX_NAMES = 8  # tensors looked up by name for one line


class Statement:
    """What the source of one line says about writing.

    `sure`: it looks like an in-place write. `chains`: the variables and attributes it names, those
    written to first, as ``("self", "state")``. `runs` and `wrote` are what was seen of it.
    """

    __slots__ = ("chains", "optimizer", "runs", "sure", "text", "wrote")

    def __init__(self, text: str, sure: bool, chains: tuple[tuple[str, ...], ...], optimizer: bool) -> None:
        self.text, self.sure, self.chains, self.optimizer = text, sure, chains, optimizer
        self.runs, self.wrote = 0, False

    def due(self) -> bool:
        """Whether to compare this time."""
        if self.wrote:
            return True
        self.runs += 1
        return self.runs <= (HARMLESS_WRITER if self.sure else HARMLESS) or self.runs & (self.runs - 1) == 0


def statements(source: str) -> dict[int, Statement]:
    """Line -> statement, for the lines of a cell that can write in place. Lines of magics are passed over."""
    lines = [re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in source.splitlines()]
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[int, Statement] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            statement = _classify(node, lines)
            if statement is not None:
                for line in range(node.lineno, _end(node) + 1):
                    found.setdefault(line, statement)
    return found


def _end(node: ast.stmt) -> int:
    """Last line of the statement itself, without the body of a compound one."""
    body = getattr(node, "body", None)
    if isinstance(body, list) and body:
        return max(node.lineno, body[0].lineno - 1)
    return node.end_lineno or node.lineno


def _classify(node: ast.stmt, lines: list[str]) -> Statement | None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return None
    written: list[ast.expr] = []
    if isinstance(node, ast.AugAssign):
        written.append(node.target)
    elif isinstance(node, ast.Assign):
        written.extend(t for target in node.targets for t in _flat(target) if isinstance(t, ast.Subscript))
    sure, optimizer, calls = bool(written), False, False
    for part in _own_expressions(node):
        if not isinstance(part, ast.Call):
            continue
        calls = True
        name = part.func.attr if isinstance(part.func, ast.Attribute) else ""
        if name == "step" or re.search(r"[^_]_$", name):
            sure, optimizer = True, optimizer or name == "step"
            written.append(part.func)
        out = next((k.value for k in part.keywords if k.arg == "out"), None)
        if out is not None:
            sure = True
            written.append(out)
    if not (sure or calls):
        return None
    named = [*written, *(p for p in _own_expressions(node) if isinstance(p, (ast.Attribute, ast.Name)))]
    chains = dict.fromkeys(chain for chain in map(_chain, named) if chain)
    text = lines[node.lineno - 1].strip()
    return Statement(text, sure, tuple(chains)[:MAX_NAMES], optimizer)


def _flat(target: ast.expr) -> list[ast.expr]:
    return [t for e in target.elts for t in _flat(e)] if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _own_expressions(node: ast.stmt) -> Iterable[ast.AST]:
    """The expressions of a statement, without those of statements and functions inside it."""
    work: list[ast.AST] = [node]
    while work:
        one = work.pop(0)
        yield one
        work.extend(c for c in ast.iter_child_nodes(one) if not isinstance(c, (ast.stmt, ast.Lambda)))


def _chain(node: ast.AST) -> tuple[str, ...]:
    """``("self", "state")`` of `self.state[0].add_`: names up to the first thing that is no attribute."""
    names: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            names.clear()
            node = node.value
        elif isinstance(node, ast.Name):
            return (node.id, *reversed(names))
        else:
            return ()


class _Armed:
    """A line that is running: what it names, and the versions of those tensors when it began."""

    __slots__ = ("frame", "line", "named", "scope", "statement")

    def __init__(
        self, frame: int, line: int, scope: Scope, statement: Statement, named: list[tuple[str, Any, int]]
    ) -> None:
        self.frame, self.line, self.scope, self.statement, self.named = frame, line, scope, statement, named


class _Usual(NamedTuple):
    """What a step of an optimizer does, time after time: the ids and positions of its parameters, and its write."""

    refs: list[weakref.ref[Any]]
    ids: list[int]
    positions: list[int]
    write: Write
    spot: tuple[int, int, int]


class _Step(NamedTuple):
    """A usual step: like `write`, at another place (its key), after so many calls. A `Write` is made when asked for."""

    spot: tuple[int, int, int]
    write: Write
    after_calls: int


class Writes:
    """The log of in-place writes.

    Parameters
    ----------
    book
        Tells which code belongs to a cell.
    calls
        How many backward calls have begun.
    where
        The place of the running code, for steps of optimizers.
    iteration
        The pass of the loop around the running line, -1: none.
    spot
        The key of the running code's place, which `book` reads. None: the steps of optimizers are all looked at.
    """

    def __init__(
        self,
        book: Book,
        calls: Callable[[], int] = lambda: 0,
        where: Callable[[], Place | None] = lambda: None,
        iteration: Callable[[], int] = lambda: -1,
        problem: Callable[[BaseException], None] = lambda error: None,
        spot: Callable[[], tuple[int, int, int] | None] = lambda: None,
    ) -> None:
        self.spot = spot
        self.book, self.calls, self.where, self.iteration, self.problem = book, calls, where, iteration, problem
        # Where lines are traced by `sys.settrace`: rest while our own code runs. Replaced by who traces.
        self.pause: Callable[[], Any] = lambda: None
        self.unpause: Callable[[Any], None] = lambda paused: None
        self._entries: deque[Write | _Step] = deque(maxlen=MAX_WRITES)
        self._statements: dict[int, dict[int, Statement]] = {}
        self._armed: dict[int, list[_Armed]] = {}  # thread -> lines that are running, the innermost last
        # Lines that are not compared, and whether one of them may have run since the last comparison.
        self._left_out: dict[Statement, set[tuple[Scope, int]]] = {}
        self._resting: dict[int, Any] = {}  # thread -> how to trace again after a step of an optimizer
        self._refs: list[weakref.ref[Any]] = []
        self._versions: list[int] = []
        self._paths: list[str] = []
        self._index: dict[int, int] = {}  # id of a watched tensor -> position
        self._handles: list[Any] = []
        self._last_step: tuple[list[int], Write | None] | None = None  # ids of what it modified, and its write
        self._usual: dict[int, _Usual] = {}  # id of an optimizer -> see `_as_usual`

    # ---------------------------------------------------------------- what is asked

    @property
    def _log(self) -> deque[Write]:
        """The writes, the oldest first."""
        entries = self._entries
        for at in range(len(entries) - 1, -1, -1):
            step = entries[at]
            if type(step) is not _Step:
                break
            like = step.write
            entries[at] = Write(
                self.book.place(*step.spot), like.by, like.paths, like.storages, step.after_calls, like.optimizer
            )
        return entries  # type: ignore[return-value]

    def all(self) -> tuple[Write, ...]:
        """The writes that are remembered, oldest first."""
        return tuple(self._log)

    def last_write(self, storage: int, after_calls: int | None = None) -> Write | None:
        """The last write to a storage; with `after_calls` the last before that many calls had begun."""
        for write in reversed(self._log):
            if storage in write.storages and (after_calls is None or write.after_calls <= after_calls):
                return write
        return None

    # ---------------------------------------------------------------- what is told

    def install(self) -> None:
        """Hear of the steps of optimizers, if torch's optimizers are loaded."""
        module = sys.modules.get("torch.optim.optimizer")
        before = getattr(module, "register_optimizer_step_pre_hook", None)
        after = getattr(module, "register_optimizer_step_post_hook", None)
        if before is not None and after is not None and not self._handles:
            self._handles = [before(self._stepping), after(self._stepped)]

    def uninstall(self) -> None:
        """Undo `install`."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self.end_cell()

    def watch(self, search: Search) -> None:
        """Watch the tensors that `search` found instead of those watched so far."""
        armed = self._armed.get(threading.get_ident())
        if armed:  # in the middle of a line, before a backward call in it
            self._add(self.where(), armed[-1].statement.text, self._changes(), armed[-1].statement.optimizer)
        self._notice_left_out()
        tensors = {id(h.tensor): (h.path, h.tensor) for h in reversed(search.holdings)}
        chosen = list(reversed(tensors.values()))
        chosen += [(spot.path(), tensor) for tensor, spot in search.others[: max(0, MAX_WATCHED - len(chosen))]]
        refs, versions, paths = [], [], []
        for path, tensor in chosen[:MAX_WATCHED]:
            at = _version(tensor)
            if at is not None:
                refs.append(weakref.ref(tensor))
                versions.append(at)
                paths.append(path)
        self._refs, self._versions, self._paths = refs, versions, paths
        self._index = {id(ref()): i for i, ref in enumerate(refs)}

    def lines_of(self, scope: Scope) -> set[int]:
        """The lines of a scope that `line` wants to hear of; the others only while one of these is running."""
        return set(self._statements_of(scope))

    def line(self, frame: FrameType, line: int, scope: Scope) -> int:
        """A line of a cell is about to run, or (`line` 0) its frame is about to be left.

        To be called by the line tracer before it counts the passes of loops.

        Returns
        -------
        int
            `id` of the frame of the innermost line that may write and is running now, 0: none is. It needs to
            hear of that frame's next line.
        """
        try:
            armed = self._armed.setdefault(threading.get_ident(), [])
            if armed:
                self._end_lines(armed, frame)
            if line > 0:
                statement = self._statements_of(scope).get(line)
                if statement is not None:
                    self._begin_line(armed, frame, line, scope, statement)
            return armed[-1].frame if armed else 0
        except Exception as error:
            self.problem(error)
            return 0

    def end_cell(self) -> None:
        """The cell has ended: compare what its last line wrote."""
        armed = self._armed.pop(threading.get_ident(), [])
        while armed:
            self._compare(armed.pop(), None)
        self._watch_again()
        self._resting.clear()

    def module_called(self, module: Any, path: str, inputs: tuple[Any, ...]) -> None:
        """A module's forward has returned; one with `inplace=True` wrote into its input."""
        if reading.own_attributes(module).get("inplace") is True and inputs and internals.is_tensor(inputs[0]):
            at = self._index.get(id(inputs[0]))
            self._add(
                self.where(), f"{path} ({type(module).__name__}, inplace=True)",
                [(self._paths[at] if at is not None else "", inputs[0])], optimizer=False,
            )  # fmt: skip

    # ---------------------------------------------------------------- lines

    def _statements_of(self, scope: Scope) -> dict[int, Statement]:
        found = self._statements.get(scope.base)
        if found is None:
            source = "\n".join(scope.cell.lines[scope.shift :])
            if len(self._statements) >= MAX_CELLS:
                del self._statements[next(iter(self._statements))]
            found = self._statements[scope.base] = statements(source)
        return found

    def _begin_line(self, armed: list[_Armed], frame: FrameType, line: int, scope: Scope, statement: Statement) -> None:
        if not statement.due():
            self._left_out.setdefault(statement, set()).add((scope, line))
            scope.unwatch(line)
            return
        if self._left_out:
            self._notice_left_out()
        named = []
        for chain in statement.chains:
            tensor = _resolve(frame, chain)
            if tensor is not None and id(tensor) not in self._index:
                at = _version(tensor)
                if at is not None:
                    named.append((".".join(chain), weakref.ref(tensor), at))
        armed.append(_Armed(id(frame), line, scope, statement, named))

    def _end_lines(self, armed: list[_Armed], frame: FrameType) -> None:
        """Compare the lines that have ended: that of this frame, and those of frames that are gone."""
        while armed:
            if armed[-1].frame == id(frame):
                self._compare(armed.pop(), frame)
                return
            outer: FrameType | None = frame.f_back
            while outer is not None and id(outer) != armed[-1].frame:
                outer = outer.f_back
            if outer is not None:  # still running: it called this frame
                return
            self._compare(armed.pop(), frame)

    def _compare(self, ended: _Armed, frame: FrameType | None) -> None:
        changed = []
        for path, ref, before in ended.named:
            tensor = ref()
            if tensor is not None and _version(tensor) != before:
                changed.append((path, tensor))
        changed += self._changes()
        if changed:
            ended.statement.wrote = True
            self._add(self._place(ended, frame), ended.statement.text, changed, ended.statement.optimizer)

    def _changes(self) -> list[tuple[str, Any]]:
        """Watched tensors whose version is another one than last time."""
        version = internals.version
        tensors = [ref() for ref in self._refs]
        now = [-1 if tensor is None else version(tensor) for tensor in tensors]
        before = self._versions
        if now == before:
            return []
        self._versions = now
        return [(self._paths[i], tensors[i]) for i in range(len(now)) if now[i] != before[i] and now[i] >= 0]

    def _notice_left_out(self) -> None:
        """A change found here was made by a line that was not compared: compare those from now on."""
        if self._changes():
            for statement in self._left_out:
                statement.wrote = True
            self._watch_again()

    def _watch_again(self) -> None:
        """Hear of the lines again that were left out."""
        for spots in self._left_out.values():
            for scope, line in spots:
                scope.watch(line)
        self._left_out.clear()

    def _place(self, ended: _Armed, frame: FrameType | None) -> Place:
        """The line that has ended, and the line of the outermost cell frame around it."""
        inner = outer = ended.scope.base + ended.line
        while frame is not None:
            scope = self.book.scope(frame.f_code)
            if scope is not None and id(frame) != ended.frame:
                outer = scope.base + (frame.f_lineno or 0)
            frame = frame.f_back
        return self.book.place(inner, outer, self.iteration())

    # ---------------------------------------------------------------- optimizers

    def _stepping(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer begins a step. Lines need not be traced in it, unless it runs code of a cell."""
        paused = None
        try:
            paused = self.pause()
            if paused is None:
                return
            own = _attributes(optimizer)
            hooks = own.get("_optimizer_step_pre_hooks") or own.get("_optimizer_step_post_hooks")
            if len(args) <= 1 and not kwargs and not hooks and _is_torch_s_own(optimizer):
                self._resting[threading.get_ident()] = paused
                paused = None
        except Exception as error:
            self.problem(error)
        finally:
            if paused is not None:
                self.unpause(paused)

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer has made a step."""
        paused = self._resting.pop(threading.get_ident(), None) or self.pause()
        try:
            groups = _attributes(optimizer).get("param_groups", ())
            parameters = [parameter for group in groups for parameter in group["params"]]
            if self._as_usual(optimizer, parameters):
                return
            changed, positions = [], []
            for parameter in parameters:
                at = self._index.get(id(parameter))
                if at is not None and self._refs[at]() is parameter:
                    now = internals.version(parameter)
                    if now != self._versions[at]:
                        self._versions[at] = now
                        changed.append((self._paths[at], parameter))
                        positions.append(at)
                elif internals.grad(parameter) is not None:
                    changed.append(("", parameter))
            if changed:
                place = self.where()
                if self._same_step(place, changed):
                    self._remember_usual(optimizer, parameters, positions)
                    return
                by = place.source if place is not None and ".step(" in place.source else ""
                self._add(place, by or f"{type(optimizer).__name__}.step()", changed, optimizer=True)
                if place is not None and self._log and self._log[-1].place is place:
                    self._last_step = ([id(tensor) for _, tensor in changed], self._log[-1])
                    self._remember_usual(optimizer, parameters, positions)
        except Exception as error:
            self.problem(error)
        finally:
            self.unpause(paused)

    def _remember_usual(self, optimizer: Any, parameters: list[Any], positions: list[int]) -> None:
        """The last write is what a step of this optimizer usually does, if all its parameters are watched."""
        if len(positions) == len(parameters):
            if len(self._usual) >= MAX_OPTIMIZERS:
                self._usual.clear()
            spot = self.spot()
            if spot is not None:
                ids = list(map(id, parameters))
                self._usual[id(optimizer)] = _Usual(self._refs, ids, positions, self._log[-1], spot)

    def _as_usual(self, optimizer: Any, parameters: list[Any]) -> bool:
        """Note a step that modified all its parameters, all of them watched, as the one before it did."""
        usual = self._usual.get(id(optimizer))
        if usual is None or usual.refs is not self._refs or list(map(id, parameters)) != usual.ids:
            return False
        versions, now = self._versions, list(map(internals.version, parameters))
        if not all(map(ne, now, map(versions.__getitem__, usual.positions))):
            return False
        for at in (0, -1):
            if usual.refs[usual.positions[at]]() is not parameters[at]:
                return False
            if internals.storage_key(parameters[at]) not in usual.write.storages:
                return False
        spot = self.spot()
        if spot is None or spot[:2] != usual.spot[:2]:
            return False
        self._entries.append(_Step(spot, usual.write, self.calls()))
        self._last_step = (usual.ids, usual.write)
        for at, version in zip(usual.positions, now, strict=True):
            versions[at] = version
        return True

    def _same_step(self, place: Place | None, changed: list[tuple[str, Any]]) -> bool:
        """Note a step that modified what the step before it did, as those of a training loop do, at little cost."""
        key = [id(tensor) for _, tensor in changed]
        last = self._last_step
        self._last_step = (key, None)
        if last is None or last[0] != key or last[1] is None or place is None:
            return False
        before = last[1]
        for at in {0, len(changed) - 1}:
            found = internals.storage_of(changed[at][1])
            if found is None or found[0] not in before.storages:
                return False
        write = Write(place, before.by, before.paths, before.storages, self.calls(), True)
        self._log.append(write)
        self._last_step = (key, write)
        return True

    # ---------------------------------------------------------------- the log

    def _add(self, place: Place | None, by: str, changed: list[tuple[str, Any]], optimizer: bool) -> None:
        """Remember a write. Tensors with a name come first: `paths` belong to the first `storages`."""
        names: dict[int, str] = {}
        for path, tensor in changed:
            found = internals.storage_of(tensor)
            if found is not None and (path or found[0] not in names):
                known = names.get(found[0])
                names[found[0]] = path if not known or len(path) < len(known) else known
        if place is None or not names:
            return
        named = sorted(names.items(), key=lambda item: not item[1])
        storages = tuple(key for key, _ in named)
        paths = tuple(path for _, path in named if path)
        last = self._log[-1] if self._log else None
        if last is not None and last.storages == storages and last.paths == paths:
            storages, paths = last.storages, last.paths  # one copy for all the steps of a training loop
        self._log.append(Write(place, by, paths, storages, self.calls(), optimizer))


def _is_torch_s_own(optimizer: Any) -> bool:
    return type(optimizer).__module__.startswith("torch.optim")


def _attributes(optimizer: Any) -> dict[str, Any]:
    """What is stored in the optimizer itself."""
    return vars(optimizer) if _is_torch_s_own(optimizer) else reading.own_attributes(optimizer)


def _version(tensor: Any) -> int | None:
    try:
        return internals.version(tensor)
    except RuntimeError:  # inference tensors count no versions
        return None


def _resolve(frame: FrameType, chain: tuple[str, ...]) -> Any:
    """The tensor that `chain` names in the frame, read without running the user's code; None if it is none."""
    name, *attributes = chain
    value = None
    if frame.f_code.co_flags & reading.CO_OPTIMIZED:
        # Not `reading.locals_of`: emptying the dict while a trace function runs would empty the frame.
        value = frame.f_locals.get(name)
    if value is None:
        value = frame.f_globals.get(name)
    for attribute in attributes:
        if value is None or internals.is_tensor(value):
            break
        value = reading.attribute(value, attribute)
    return value if value is not None and internals.is_tensor(value) else None
