"""What is to be run, and how a file becomes a list of cells: a notebook (.ipynb), or Python (.py)."""

from __future__ import annotations

import ast
import json
import re
import shlex
import warnings
from dataclasses import dataclass
from importlib.util import decode_source
from pathlib import Path

_MARK = re.compile(r"^#\s*%%(.*)$")
_NOT_CODE = re.compile(r"\[(markdown|md|raw)\]", re.IGNORECASE)


class UnreadableProgram(Exception):
    """A file that cannot be run as cells; the message names the next step."""


class StoppedProgram(Exception):
    """A program that could not be started, or not be run to its end; the message says where."""


@dataclass(frozen=True)
class Start:
    """How a program is started: its file, or with `module` its dotted name, and its ``sys.argv[1:]``."""

    target: str
    arguments: tuple[str, ...] = ()
    module: bool = False

    @property
    def command(self) -> str:
        """As it stands on a command line behind ``python``."""
        dashes = ("-m",) if self.module else ("--",) if self.target.startswith("-") and self.target != "-" else ()
        return shlex.join((*dashes, self.target, *self.arguments))

    @property
    def explained_by(self) -> str:
        """The command that explains it. A program from standard input has to be in a file for that."""
        return f"graphwidget explain {'FILE.py' if self.target == '-' else self.command}"


@dataclass(frozen=True)
class Program:
    """A file as code cells. Markdown cells are left out; cells are counted from 1 among the code cells.

    `plain`: Python without a mark of a cell, to be run as a whole.
    """

    path: Path
    cells: tuple[str, ...]
    notebook: bool = False
    plain: bool = False

    @property
    def order(self) -> tuple[int, ...]:
        """Each cell once, from the first to the last."""
        return tuple(range(1, len(self.cells) + 1))

    @property
    def needs_jupyter(self) -> bool:
        """Whether it has to run in a Jupyter kernel: a notebook, or cells with magics, shell lines or ``await``."""
        return self.notebook or any(map(_is_for_jupyter, self.cells))


def read(path: str | Path) -> Program:
    """The code cells of a file.

    Raises
    ------
    UnreadableProgram
        If the file is missing, is neither a notebook nor Python, is broken, or is in another language.
    """
    path = Path(path)
    if path.is_dir():
        raise UnreadableProgram(f"{path}: is a directory; name a notebook (.ipynb) or Python cells (.py) in it")
    if path.suffix not in (".ipynb", ".py"):
        raise UnreadableProgram(f"{path}: expected a notebook (.ipynb) or Python (.py)")
    notebook = path.suffix == ".ipynb"
    try:
        text = path.read_text(encoding="utf-8") if notebook else decode_source(path.read_bytes())
    except OSError as error:
        raise UnreadableProgram(f"{path}: {error.strerror or error}") from None
    except (UnicodeDecodeError, SyntaxError):  # the second: of what the first lines say of the encoding
        raise UnreadableProgram(f"{path}: not UTF-8 text, and no line in it names another encoding") from None
    cells = _notebook(path, text) if notebook else _percent(text)
    if not cells:
        raise UnreadableProgram(f"{path}: there is no code cell in it")
    plain = not notebook and not any(map(_MARK.match, text.split("\n"))) and not _is_for_jupyter(cells[0])
    return Program(path, cells, notebook, plain)


def check_torch() -> None:
    """Import torch.

    Raises
    ------
    StoppedProgram
        If that fails, in whatever way.
    """
    try:
        import torch  # noqa: F401
    except Exception as error:  # a broken installation may raise anything
        why = " ".join(str(error).split())
        raise StoppedProgram(f"torch cannot be imported ({type(error).__name__}: {why})") from None


def _is_for_jupyter(cell: str) -> bool:
    """Whether IPython can parse a cell that Python cannot. A cell that neither can parse is an error in both."""
    if _parses(cell, 0):
        return False
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        code = TransformerManager().transform_cell(cell)
    except SyntaxError:
        return False
    return _parses(code, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def _parses(code: str, flags: int) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "<cell>", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _percent(text: str) -> tuple[str, ...]:
    """Cells of a script; code before the first mark is a cell, too."""
    cells: list[list[str]] = [[]]
    keep = [True]
    for line in text.split("\n"):
        mark = _MARK.match(line)
        if mark:
            cells.append([])
            keep.append(not _NOT_CODE.search(mark[1]))
        else:
            cells[-1].append(line)
    first = "\n".join(cells[0])
    keep[0] = any(line.strip() and not line.lstrip().startswith("#") for line in first.splitlines())
    return tuple("\n".join(lines).rstrip() + "\n" for lines, kept in zip(cells, keep) if kept)


def _notebook(path: Path, text: str) -> tuple[str, ...]:
    import nbformat

    try:
        notebook = nbformat.reads(text, as_version=4)
    except (json.JSONDecodeError, nbformat.reader.NotJSONError):
        raise UnreadableProgram(f"{path}: not a notebook: the file is not JSON") from None
    except Exception as error:  # nbformat raises many kinds for a broken structure
        raise UnreadableProgram(f"{path}: not a readable notebook ({type(error).__name__}: {error})") from None
    metadata = notebook.get("metadata", {})
    language = metadata.get("kernelspec", {}).get("language") or metadata.get("language_info", {}).get("name")
    if language and str(language).lower() not in ("python", "ipython", "python3"):
        raise UnreadableProgram(f"{path}: its language is {language}; graphwidget runs Python notebooks")
    if not isinstance(notebook.get("cells"), list):
        raise UnreadableProgram(f"{path}: not a readable notebook: it has no list of cells")
    return tuple(str(cell.get("source", "")) for cell in notebook.cells if cell.get("cell_type") == "code")


def order_of(text: str, count: int) -> tuple[int, ...]:
    """The cells to run, in order, from ``1,2,3,2``.

    Raises
    ------
    UnreadableProgram
        If a number is not one of the cells.
    """
    try:
        order = tuple(int(part) for part in text.replace(" ", ",").split(",") if part)
    except ValueError:
        raise UnreadableProgram(f"--order {text}: expected numbers of cells, such as 1,2,3,2") from None
    wrong = [n for n in order if not 1 <= n <= count]
    if wrong or not order:
        raise UnreadableProgram(f"--order {text}: the file has cells 1 to {count}")
    return order
