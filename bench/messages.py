"""Which errors PyTorch's autograd can raise, and how many of them have a finding.

    .venv/bin/python bench/messages.py [--all]

The texts are read from the installed torch: the messages of `raise` statements in its Python sources of autograd,
checkpoints and DistributedDataParallel, and the sentences in its libraries that speak of autograd. A text counts as
explained if one of the parts in `graphwidget.model.torch_messages` stands in it. The lists are long and also hold what
no program can cause by itself, so the share is a sign of what is missing, and no grade. Checks of PyTorch on itself
("please report a bug") are counted apart.
"""

from __future__ import annotations

import argparse
import ast
import mmap
import re
from collections.abc import Iterator
from pathlib import Path

import torch

from graphwidget.model import torch_messages

SOURCES = (
    *("autograd/__init__.py", "autograd/function.py", "autograd/graph.py", "autograd/functional.py", "_tensor.py"),
    *("utils/checkpoint.py", "utils/hooks.py", "nn/parallel/distributed.py", "nn/modules/module.py"),
)
LIBRARIES = ("libtorch_cpu.so", "libtorch_python.so", "libc10.so")
SENTENCE = re.compile(rb"[\x20-\x7e\n]{30,600}")
OF_AUTOGRAD = re.compile(
    r"autograd|backward\b.*\b(graph|time|grad)|requires[_ ]grad|grad_fn|\bleaf\b|saved tensor|[Ii]nference tensor|"
    r"inplace|in-place|mark a variable ready|finished reduction|double backward|differentiable"
)
ON_ITSELF = re.compile(
    r"INTERNAL ASSERT FAILED|[Rr]eport (a|this) bug|[Pp]lease (open|file) an issue|[Ii]nternal error"
)
PROSE = re.compile(r"[A-Za-z]+ [a-z]+ [a-z]+ ")  # three words in a row: a sentence, not a name or a schema


def in_sources(root: Path) -> Iterator[str]:
    """The constant texts of `raise` statements."""
    for pattern in SOURCES:
        for path in sorted(root.glob(pattern)):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                    parts = [n.value for n in ast.walk(node.exc.args[0]) if isinstance(n, ast.Constant)]
                    text = "".join(part for part in parts if isinstance(part, str))
                    if text:
                        yield text


def in_libraries(root: Path) -> Iterator[str]:
    """The sentences in the libraries that speak of autograd."""
    for name in LIBRARIES:
        path = root / "lib" / name
        if not path.exists():
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for found in SENTENCE.finditer(data):
                text = found[0].decode("ascii")
                if OF_AUTOGRAD.search(text) and PROSE.search(text) and "::" not in text and "->" not in text:
                    yield text


def explained() -> tuple[str, ...]:
    """All parts of messages that a finding explains."""
    values = vars(torch_messages).values()
    groups = [one for one in values if isinstance(one, tuple) and all(isinstance(part, str) for part in one)]
    return tuple(part for group in groups for part in group if part != "NoneType")


def main() -> None:
    """Print the texts without a finding, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="list also the texts that have a finding")
    options = parser.parse_args()
    root, known = Path(torch.__file__).parent, explained()
    for title, texts in (("sources", in_sources(root)), ("libraries", in_libraries(root))):
        found = sorted({" ".join(text.split()) for text in texts})
        every = [text for text in found if not ON_ITSELF.search(text)]
        without = [text for text in every if not any(part in text for part in known)]
        for text in every if options.all else without:
            print(f"  {'-' if text in without else '+'} {text[:150]}")
        print(
            f"{title}: {len(every)} texts, {len(every) - len(without)} with a finding; "
            f"{len(found) - len(every)} more are checks of PyTorch on itself (torch {torch.__version__})"
        )


if __name__ == "__main__":
    main()
