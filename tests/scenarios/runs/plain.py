"""Run a program cell by cell in plain torch, as a notebook would: without graphwidget, in a fork of its own."""

from __future__ import annotations

import ast
import contextlib
import gc
import io
import linecache
import os
import pickle
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Cell(NamedTuple):
    first_line: int  # line number in the file
    text: str


def parse(path: str | Path) -> tuple[list[str], list[Cell]]:
    """Return the header's lines and the cells of a program in the percent format."""
    header: list[str] = []
    cells: list[Cell] = []
    lines: list[str] | None = None
    first = 0
    for number, line in enumerate([*Path(path).read_text(encoding="utf-8").split("\n"), "# %%"], 1):
        if line.startswith("# %%"):
            if lines is not None:
                cells.append(Cell(first, "\n".join(lines).rstrip() + "\n"))
            lines, first = [], number + 1
        elif lines is None:
            header.append(line)
        else:
            lines.append(line)
    return header, cells


def run_order(header: Sequence[str], cells: int) -> list[int]:
    """Return the cells to run, counted from 1; a header may give another order (``# run_order: 1 2 3 2``)."""
    for line in header:
        if found := re.match(r"#\s*run_order:\s*([\d ]+)", line):
            return [int(number) for number in found[1].split()]
    return list(range(1, cells + 1))


def order_of(path: str) -> str:
    """Return the value of ``--order`` for a program that gives its own order, else an empty text."""
    header, _ = parse(path)
    order = run_order(header, 0)
    return ",".join(map(str, order))


def cell_of(filename: str) -> int | None:
    """Return the cell that was compiled under this file name, counted from 1."""
    found = re.match(r"<scenario (\S+) cell (\d+)>$", filename)
    return int(found[2]) if found else None


class Runner:
    """Runs the cells in one namespace, with ``_``, ``Out`` and ``sys.last_value`` as IPython keeps them."""

    def __init__(self, name: str, path: str | Path) -> None:
        self.header, self.cells = parse(path)
        self.namespace: dict[str, Any] = {"__name__": "__main__", "Out": {}}
        self.errors: list[dict[str, Any]] = []
        self._codes = [self._compiled(name, number, cell.text) for number, cell in enumerate(self.cells, 1)]

    @staticmethod
    def _compiled(name: str, number: int, text: str) -> tuple[Any, Any]:
        """Return the code of a cell, and the code of the expression at its end, whose value is displayed."""
        filename = f"<scenario {name} cell {number}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        tree = ast.parse(text, filename)
        shown = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            shown = compile(ast.Expression(tree.body.pop().value), filename, "eval")  # type: ignore[attr-defined]
        return compile(tree, filename, "exec"), shown

    def run(self) -> Runner:
        for step, cell in enumerate(run_order(self.header, len(self.cells)), 1):
            body, shown = self._codes[cell - 1]
            try:
                exec(body, self.namespace)
                value = eval(shown, self.namespace) if shown else None
                if value is not None:
                    self.namespace["Out"][step] = self.namespace["_"] = value
            except Exception as error:
                self.errors.append(self._described(error, step))
                sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        return self

    def _described(self, error: Exception, step: int) -> dict[str, Any]:
        frames = [(cell_of(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
        frames = [frame for frame in frames if frame[0] is not None]
        (cell, line), (inner_cell, inner_line) = frames[0], frames[-1]
        return {
            "step": step,
            "cell": cell,
            "line": line,
            "file_line": self.cells[cell - 1].first_line + line - 1,
            "inner_cell": inner_cell,
            "inner_line": inner_line,
            "type": type(error).__name__,
            "message60": str(error)[:60],
        }


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress the program's output and warnings, and seed its random numbers."""
    import torch

    torch.manual_seed(0)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def outcome(name: str, path: str, checks: Sequence[str] = ()) -> dict[str, Any]:
    """Return the errors of a program, and the expressions that do not hold at its end: ``{expression: why}``."""
    import torch

    with quiet():
        runner = Runner(name, path).run()
        names = {"gc": gc, "torch": torch, **runner.namespace, "graph_size": graph_size}
        failed = {check: why for check in checks if (why := _why_not(check, names))}
    return {"errors": runner.errors, "failed": failed}


def _why_not(check: str, names: dict[str, Any]) -> str:
    try:
        return "" if eval(check, names) else "False"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def graph_size(tensor: Any) -> int:
    """Return the number of autograd nodes below a tensor."""
    found: set[Any] = set()
    pending = [tensor.grad_fn] if tensor is not None else []
    while pending:
        node = pending.pop()
        if node is not None and node not in found:
            found.add(node)
            pending.extend(following for following, _ in node.next_functions)
    return len(found)


def child(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function in a fork of this process; ``{"harness_error": traceback}`` if that failed."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            result = function(*arguments)
        except BaseException as error:
            result = {"harness_error": "".join(traceback.format_exception(error))}
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(pickle.dumps(result))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(pid, 0)
    return pickle.loads(data) if data else {"harness_error": "the child died"}


def preload() -> None:
    """Import the lazy imports of torch.optim, checkpoint and torch.func, once for all forks: 2 to 3 s.

    What is here by then is no business of a fork's garbage collector: to look through it took longer than any program.
    """
    import torch
    import torch._dynamo
    import torch.distributions
    import torch.func
    import torch.nested._internal.nested_tensor
    import torch.nn.utils.parametrize
    import torch.utils.checkpoint

    torch.set_num_threads(1)  # a fork has only the thread that called it
    parameter = torch.nn.Parameter(torch.zeros(2))
    for optimizer in (torch.optim.Adam, torch.optim.SGD, torch.optim.Adagrad, torch.optim.LBFGS):
        optimizer([parameter])
    torch.func.vmap(torch.sin)(torch.zeros(2))
    gc.collect()
    gc.freeze()
