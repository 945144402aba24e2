"""The lectures: their cells, and what a kernel says when they run from top to bottom."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.manager import start_new_kernel

FOLDER = Path(__file__).resolve().parents[2] / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_QUOTE = re.compile(r"^```text\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
_CALLS = """[(c.place.outer_cell, c.root_names, c.retain_graph, c.result, c.failed_node)
    for c in __import__("graphwidget.api", fromlist=[""]).current_tracker().calls]"""
_FINDINGS = """[(f.severity, f.kind, f.headline) for f in __import__("graphwidget").explain()]"""
_GRAPH_SIZE = '(lambda tensor: len(__import__("graphwidget").snapshot(tensor)))'


@dataclass(frozen=True)
class Call:
    """A backward call that a lecture makes: what a scenario measures of it, too."""

    cell: int
    roots: tuple[str, ...]
    retains: bool
    result: str
    failed_node: str | None


@dataclass
class Cell:
    """A cell, and what it said when it ran.

    `printed` is all its text on one line. `raised`: the name of the exception. `findings`: (severity, kind, headline)
    of what the tool said afterwards. `expected`: what a scenario says that holds after it, and whether it does.
    """

    kind: str
    source: str
    tags: tuple[str, ...]
    metadata: Any
    printed: str = ""
    raised: str | None = None
    number: int | None = None
    findings: tuple[tuple[str, str, str], ...] = ()
    expected: dict[str, bool] = field(default_factory=dict)

    @property
    def quotes(self) -> list[str]:
        """The blocks of a text cell that are quoted from the output above it."""
        return [one_line(text) for text in _QUOTE.findall(self.source)]

    @property
    def prose(self) -> str:
        return _QUOTE.sub("", self.source)


@dataclass
class Lecture:
    name: str
    cells: list[Cell]
    calls: list[Call] = field(default_factory=list)

    @classmethod
    def read(cls, name: str) -> Lecture:
        """Read a lecture; nothing runs."""
        notebook = nbformat.read(FOLDER / name, as_version=4)
        return cls(
            name,
            [Cell(c.cell_type, c.source, tuple(c.metadata.get("tags", ())), c.metadata) for c in notebook.cells],
        )

    @cached_property
    def code(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.kind == "code"]

    def of_scenario(self, scenario: str) -> list[Cell]:
        """The cells that are an example of the five documents, which is also a scenario."""
        return [cell for cell in self.code if scenario in cell.tags]

    def quoted(self) -> Iterator[tuple[str, str]]:
        """Each quotation, with what the code cell above it printed."""
        said = ""
        for cell in self.cells:
            if cell.kind == "code":
                said = cell.printed
            for quote in cell.quotes:
                yield quote, said

    def run(self, expected: dict[str, list[str]]) -> None:
        """Run all cells in a kernel of their own. `expected`: expressions that hold after a scenario's last cell."""
        manager, client = start_new_kernel(kernel_name="python3", cwd=str(FOLDER))
        try:
            last = {tag: cell for cell in self.code for tag in cell.tags if tag in expected}
            for cell in self.code:
                _run(client, cell)
                cell.findings = tuple(_value(client, _FINDINGS))
                for scenario in (tag for tag, one in last.items() if one is cell):
                    for text in expected[scenario]:
                        asked = f"bool({text.replace('graph_size', _GRAPH_SIZE)})"
                        cell.expected[text] = _value(client, asked)
            self.calls = [Call(*call) for call in _value(client, _CALLS)]
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)

    def calls_of(self, cells: list[Cell]) -> list[Call]:
        numbers = [cell.number for cell in cells]
        return [call for call in self.calls if call.cell in numbers]


def one_line(text: str) -> str:
    """Text without colours and line breaks: a note is wrapped."""
    return " ".join(_COLOUR.sub("", text).split())


def _run(client: Any, cell: Cell) -> None:
    said: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            said.append(content["text"])
        elif kind == "error":
            cell.raised = content["ename"]
            said.extend(content["traceback"])
        elif kind in ("execute_result", "display_data"):
            said.append(content["data"].get("text/plain", ""))

    reply = client.execute_interactive(cell.source, timeout=60, output_hook=hear, stop_on_error=False)
    cell.number = reply["content"]["execution_count"]
    cell.printed = one_line("".join(said))


def _value(client: Any, expression: str) -> Any:
    """The value of an expression in the kernel. It is no cell: nothing is recorded of it."""
    reply = client.execute_interactive("", silent=True, user_expressions={"asked": expression}, timeout=60)
    answer = reply["content"]["user_expressions"]["asked"]
    if answer["status"] != "ok":
        raise RuntimeError(f"{expression}: {answer['ename']}: {answer['evalue']}")
    return ast.literal_eval(answer["data"]["text/plain"])
