"""Private names of torch stand in `graphwidget/torch_internals` alone, and graphwidget loads without any one of them.

What counts as private here: an attribute of a torch module, class or object that begins with an underscore, a torch
module with an underscore in its path, and the prefixes under which nodes show what they saved. Not counted: the
attributes `_parameters`, `_buffers` and `_modules` of `torch.nn.Module`, which are entries of the instance's own dict
that pickles and state dicts have relied on since torch 0.1, and are read with `.get`.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import graphwidget
from graphwidget import torch_internals as ti

PACKAGE = Path(graphwidget.__file__).parent
PREFIXES = ("_raw_saved", "_saved_")
OTHERS = {"_forward_cls", "_backward_fn", "_compiled_autograd_key", "_optimizer_step_pre_hooks", "_CONSUMED"}
NAMES = OTHERS | {part for name in ti.PRIVATE_NAMES for part in name.split(".")[1:] if part.startswith("_")}


def is_private(word: str) -> bool:
    return word in NAMES or word.startswith(PREFIXES)


def private_names(tree: ast.Module) -> Iterator[str]:
    """Private names of torch that a file spells: attributes, strings, imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            chain = ast.unparse(node).split(".")
            if chain[0] == "self":  # an attribute of our own
                continue
            if is_private(node.attr) or (
                chain[0] == "torch" and node.attr.startswith("_") and not node.attr.startswith("__")
            ):
                yield f"{node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_private(node.value):
            yield f"{node.lineno}: {node.value!r}"
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            module = getattr(node, "module", None) or ""
            for alias in node.names:
                path = [*module.split("."), *alias.name.split(".")]
                if "torch" in path[:2] and any(part.startswith("_") for part in path):
                    yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_private_name_of_torch_stands_outside_torch_internals():
    found = [
        f"{path.relative_to(PACKAGE)}:{name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if "torch_internals" not in path.parts
        for name in private_names(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_that_test_can_fail():
    lines = [
        "node._sequence_nr()",
        "getattr(node, '_raw_saved_self')",
        "torch._C._functions",
        "from torch.utils._python_dispatch import TorchDispatchMode",
        "import torch._dynamo",
    ]
    assert all(list(private_names(ast.parse(line))) for line in lines)
    assert not list(private_names(ast.parse("self._own.get('_parameters')\nimport torch.nn")))


def test_every_name_is_there_and_says_what_is_lost_without_it():
    """If this fails with a new torch: the test below shows that graphwidget loads all the same."""
    assert ti.missing() == {}
    assert len(ti.PRIVATE_NAMES) > 40
    assert all(lost.endswith(".") and len(lost) > 20 for lost in ti.PRIVATE_NAMES.values())


# Loads the extension in a process for each name, in which that name is not found. The processes are forked before
# any backward has run; each imports graphwidget of its own.
PROGRAM = """
import contextlib, importlib.util, io, json, os, sys, traceback
import torch, torch.utils.checkpoint
import torch._dynamo  # the first checkpoint would import it in each process
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
import graphwidget, graphwidget.notebook.extension, graphwidget.notebook.notes, graphwidget.diagnosis.diagnose

package, names = sys.argv[1], json.load(sys.stdin)

def without(name):
    for module in [module for module in sys.modules if module.partition(".")[0] == "graphwidget"]:
        del sys.modules[module]  # what it imports of others stays, so that a process takes little time
    spec = importlib.util.spec_from_file_location(
        "graphwidget.torch_internals.private", os.path.join(package, "torch_internals", "private.py")
    )
    private = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = private
    spec.loader.exec_module(private)
    look_up = private._look_up
    private._look_up = lambda asked: (None, [asked]) if asked == name else look_up(asked)
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        shell.run_line_magic("load_ext", "graphwidget")
    lost = private.PRIVATE_NAMES[name]
    assert f"graphwidget: this torch has no {name}. {lost}" in said.getvalue(), said.getvalue()
    assert len(said.getvalue().splitlines()) == 1, said.getvalue()
    cell = '''
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]
w = torch.ones(3, requires_grad=True)
base = torch.zeros(3)
base[:2] = w[:2] * 2
h = Square.apply(w).sin()
k = torch.utils.checkpoint.checkpoint(torch.sin, w, use_reentrant=False)
loss = (h * k).sum() + base.sum()
loss.backward(retain_graph=True)
'''
    with contextlib.redirect_stdout(io.StringIO()):
        shell.run_cell(cell).raise_error()
        shell.run_cell("import graphwidget; found = graphwidget.snapshot()").raise_error()
    names = {node.name for node in shell.user_ns["found"].nodes}
    assert {"MulBackward0", "SinBackward0", "SumBackward0", "AccumulateGrad"} <= names, names
    with contextlib.redirect_stderr(said):
        shell.run_line_magic("unload_ext", "graphwidget")

failed = {}
for name in names:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            without(name)
            message = ""
        except BaseException:
            message = traceback.format_exc()[-1500:]
        os.write(writing, message.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        message = told.read()
    status = os.waitpid(child, 0)[1]
    if message or status:
        failed[name] = message or f"status {status}"
print(json.dumps(failed))
"""


def test_the_extension_loads_without_any_one_of_them_and_says_what_is_lost():
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(PACKAGE)],
        input=json.dumps(list(ti.PRIVATE_NAMES)),
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    failed = json.loads(done.stdout.splitlines()[-1])
    assert failed == {}, "\n".join(f"{name}: {message}" for name, message in failed.items())
