"""Measures the truth of the scenarios: the work of the engine, observed by hooks on its nodes.

The hooks hold nodes and tensors, which a program could notice. The product must not do that; a measurement may.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

from runs.plain import Runner, cell_of, quiet

LARGEST = 20_000  # nodes of a graph whose nodes get hooks
DEEPEST = 4  # nesting levels of containers that are searched
WIDEST = 50  # elements of a container that are searched
FREED = ("second time", "extra time", "already been freed")  # words of torch's messages
WITH_TENSORS = ("__main__", *(f"torch.distributions.{name}" for name in ("bernoulli", "normal", "categorical")))


class Calls:
    """The backward calls of a running program: executed nodes, failed node, freeing call, and carriers of each."""

    def __init__(self, runner: Runner) -> None:
        import torch

        self.torch, self.runner = torch, runner
        self.records: list[dict[str, Any]] = []
        self.alive: dict[int, Any] = {}  # holds the nodes, so that no id is used twice
        self.freed: dict[int, int] = {}  # node id -> the call that freed it
        self.freed_by: list[set[int]] = []  # per call, the ids of nodes that it freed
        self.held: list[dict[str, tuple[int, int]]] = []  # per call, what names held at its end
        self.running = False
        self.engine = torch.autograd._engine_run_backward
        torch.autograd._engine_run_backward = torch.autograd.graph._engine_run_backward = self.run

    def run(self, outputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """Replace the engine: run it with hooks on every node, and record the call."""
        frames = list(_frames_of_cells())
        inside = self.running or not frames  # inside checkpoint or a custom backward, or outside the program
        if inside or any(self._is_traced(output) for output in outputs):
            return self.engine(outputs, *args, **kwargs)
        edge = self.torch.autograd.graph.GradientEdge
        roots = [output.node if isinstance(output, edge) else output.grad_fn for output in outputs]
        retain = bool(args[1]) if len(args) > 1 else bool(kwargs.get("keep_graph"))
        nodes = self._below(roots)
        hooked = nodes if len(nodes) <= LARGEST else []
        started: list[Any] = []
        finished: list[Any] = []
        hooks = [node.register_prehook(lambda grads, node=node: started.append(node)) for node in hooked]
        hooks += [node.register_hook(lambda ins, outs, node=node: finished.append(node)) for node in hooked]
        record = self._record(outputs, roots, frames)
        record["retain_graph"], record["create_graph"] = retain, bool(args[2]) if len(args) > 2 else False
        record["graph_nodes"] = len(nodes) if hooked else f">{LARGEST}"
        self.running = True
        try:
            return self.engine(outputs, *args, **kwargs)
        except Exception as error:
            failed = [node for node in started if node not in finished][-1:]
            record |= {"result": "raised", **self._failure(error, failed, roots, frames)}
            raise
        finally:
            self.running = False
            for hook in hooks:
                hook.remove()
            record["nodes_executed"] = len(finished)
            ids = set() if retain else {id(node) for node in finished}
            for one in ids:
                self.freed.setdefault(one, len(self.records) - 1)
            self.freed_by[-1] = ids
            self.held[-1] = self._holders(frames)

    def _is_traced(self, output: Any) -> bool:
        """Whether a call belongs to torch.compile's own tracing, or to torch.func."""
        if type(output).__name__ in ("FakeTensor", "FunctionalTensor"):
            return True
        wrapped = self.torch._C._functorch.is_functorch_wrapped_tensor
        return isinstance(output, self.torch.Tensor) and wrapped(output)

    def _record(self, outputs: Sequence[Any], roots: Sequence[Any], frames: list[Any]) -> dict[str, Any]:
        names: dict[int, list[str]] = {}
        for path, (tensor, _) in self._holders(frames).items():
            names.setdefault(tensor, []).append(path)
        (cell, line), (outer_cell, outer_line) = (
            (cell_of(frame.f_code.co_filename), frame.f_lineno) for frame in (frames[0], frames[-1])
        )
        record = {
            "n": len(self.records),
            "cell": cell,
            "line": line,
            "outer_cell": outer_cell,
            "outer_line": outer_line,
            "api": "autograd.grad" if sys._getframe(2).f_code.co_name == "grad" else "backward",
            "roots": [root.name() if root is not None else None for root in roots],
            "root_vars": [min(names.get(id(output), [None]), key=lambda path: len(path or "")) for output in outputs],
            "result": "ok",
        }
        self.records.append(record)
        self.freed_by.append(set())
        self.held.append({})
        return record

    def _failure(self, error: Exception, failed: list[Any], roots: Sequence[Any], frames: list[Any]) -> dict[str, Any]:
        """Return the failed node; if its saved tensors were freed, also the freeing call and the carriers."""
        if not failed:
            return {}
        found: dict[str, Any] = {"failed_node": failed[0].name()}
        earlier = self.freed.get(id(failed[0]))
        if earlier is not None and any(words in str(error) for words in FREED):
            call = self.records[earlier]
            found["freed_by"] = {"n": earlier, "cell": call["cell"], "line": call["line"]}
            found["carriers"] = self._carriers(roots, earlier, frames)
        return found

    def _below(self, roots: Sequence[Any]) -> list[Any]:
        """Return the reachable nodes; at most `LARGEST` + 1 of a larger graph."""
        found: dict[int, Any] = {}
        pending = list(roots)
        while pending and len(found) <= LARGEST:
            node = pending.pop()
            if node is not None and id(node) not in found:
                found[id(node)] = self.alive[id(node)] = node
                pending.extend(following for following, _ in node.next_functions)
        return list(found.values())

    def _holders(self, frames: list[Any]) -> dict[str, tuple[int, int]]:
        """Return Python path -> ids of the tensor and its node, for the namespace and for running functions."""
        namespace = self.runner.namespace
        found: dict[str, tuple[int, int]] = {}
        visited: set[int] = set()
        for name, value in list(namespace.items()):
            if not name.startswith("__") and name != "Out":
                self._look(name, value, 0, found, visited)
        for frame in frames:
            if frame.f_locals is not namespace and frame.f_code.co_name != "<module>":
                for name, value in frame.f_locals.items():
                    self._look(f"{frame.f_code.co_name}:{name}", value, 0, found, visited)
        return found

    def _look(self, path: str, value: Any, depth: int, found: dict[str, tuple[int, int]], visited: set[int]) -> None:
        if isinstance(value, self.torch.Tensor):
            node = _node_of(value)
            if node is not None:
                self.alive[id(node)] = node
                found[path] = (id(value), id(node))
        elif depth <= DEEPEST:
            by_identity = isinstance(value, self.torch.nn.Module) or type(value).__module__ in WITH_TENSORS
            if by_identity and id(value) in visited:
                return
            visited.add(id(value))
            for step, part in _parts(value, self.torch.nn.Module):
                self._look(path + step, part, depth + 1, found, visited)

    def _carriers(self, roots: Sequence[Any], earlier: int, frames: list[Any]) -> dict[str, Any]:
        """Return the paths that led from the failed call to nodes that the `earlier` call had freed."""
        old = self.freed_by[earlier]
        boundary = self._boundary(roots, old)
        then = {path: at for path, at in self.held[earlier].items() if at[1] in boundary}
        now = {path: at for path, at in self._holders(frames).items() if at[1] in boundary}
        still = sorted(path for path in now if then.get(path) == now[path])
        fresh = sorted(path for path in now if path not in then)
        gone = sorted(path for path in then if path not in still)
        if not (still or gone or fresh):
            # Made before the earlier call and not visited by it: an LSTM's state, a second output.
            own = {id(root) for root in roots}
            inside = {id(node) for node in self._below(roots)} - own
            other = {path: at for path, at in self.held[earlier].items() if at[1] in inside}
            here = self._holders(frames)
            still = sorted(path for path, at in other.items() if here.get(path) == at)
            gone = sorted(other)
        if not still and fresh and gone and all(":" in path for path in gone):
            gone = fresh
        return {
            "boundary_nodes": sorted({self.alive[node].name() for node in boundary}),
            "still_held": still,
            "held_when_freed": [] if still else gone,
            "held_only_now": fresh,
        }

    def _boundary(self, roots: Sequence[Any], old: set[int]) -> set[int]:
        """Return the first old node on each path down from the roots."""
        boundary, seen = set(), set()
        pending = [root for root in roots if root is not None]
        while pending:
            node = pending.pop()
            if id(node) in old:
                boundary.add(id(node))
            elif id(node) not in seen:
                seen.add(id(node))
                below = (following for following, _ in node.next_functions if following is not None)
                pending += [one for one in below if one.name() != "torch::autograd::AccumulateGrad" or one in roots]
        return boundary


def _frames_of_cells() -> Iterator[Any]:
    """Yield the frames of the program's cells, innermost first."""
    frame = sys._getframe(2)
    while frame is not None:
        if cell_of(frame.f_code.co_filename) is not None:
            yield frame
        frame = frame.f_back


def _node_of(tensor: Any) -> Any:
    try:
        return tensor.grad_fn
    except Exception:  # a subclass may refuse
        return None


def _parts(value: Any, module: type) -> Iterator[tuple[str, Any]]:
    """Yield the parts of an object, each with its step of a path."""
    if isinstance(value, types.FunctionType):
        for name, held in zip(value.__code__.co_freevars, value.__closure__ or ()):
            try:
                yield f".__closure__[{name}]", held.cell_contents
            except ValueError:  # not filled yet
                continue
    elif isinstance(value, types.GeneratorType):
        for name, local in (value.gi_frame.f_locals if value.gi_frame else {}).items():
            yield f".gi_frame[{name}]", local
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value[:WIDEST]):
            yield f"[{index}]", part
    elif isinstance(value, dict):
        for key, part in list(value.items())[:WIDEST]:
            yield f"[{key!r}]", part
    elif isinstance(value, module):
        for name, part in value.__dict__.items():
            if name in ("_parameters", "_buffers", "_modules"):
                yield from ((f".{inner}", one) for inner, one in part.items())
            elif not name.startswith("__"):
                yield f".{name}", part
    elif not isinstance(value, type) and hasattr(value, "__dict__") and type(value).__module__ in WITH_TENSORS:
        for name, part in vars(value).items():
            yield f".{name}", part


def calls(name: str, path: str) -> dict[str, Any]:
    """Return the errors and the backward calls of a program."""
    with quiet():
        runner = Runner(name, path)
        records = Calls(runner).records
        runner.run()
    return {"errors": runner.errors, "calls": records}


def last_writes(name: str, path: str, tensors: Sequence[str]) -> dict[str, list[int]]:
    """Return tensor -> (cell, line) at the top level that last modified it before the first error, by its version."""
    with quiet():
        runner = Runner(name, path)
        seen: dict[str, tuple[int, int]] = {}
        writes: dict[str, list[int]] = {}
        running = [0, 0]

        def compare() -> None:
            for expression in tensors:
                try:
                    value = eval(expression, runner.namespace)
                    now = (id(value), value._version)
                except Exception:
                    continue
                before = seen.get(expression)
                if before and before[0] == now[0] and before != now and not runner.errors:
                    writes[expression] = list(running)
                seen[expression] = now

        def trace(frame: Any, event: str, argument: Any) -> Any:
            cell = cell_of(frame.f_code.co_filename)
            if cell is None:
                return None
            if frame.f_code.co_name == "<module>" and event in ("line", "exception", "return"):
                compare()
                if event == "line":
                    running[:] = [cell, frame.f_lineno]
            return trace

        sys.settrace(trace)
        try:
            runner.run()
        finally:
            sys.settrace(None)
    return writes
