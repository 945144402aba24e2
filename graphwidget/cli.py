"""The command line: explain a file, open the first lecture.

    graphwidget explain FILE [--format text|json|html|svg|dot] [--order 1,2,3,2] [--timeout SECONDS]
    graphwidget demo [--port PORT] [--no-browser]

Exit status of `explain`: 0 the program ran to its end and no finding has severity error; 1 it raised, or a finding has
severity error; 2 the file cannot be read or started, or the command line is wrong.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphwidget.programs.journal import Answer
    from graphwidget.programs.target import Program

CANNOT_RUN = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _parser() -> argparse.ArgumentParser:
    from graphwidget import __version__
    from graphwidget.render.formats import FORMATS

    parser = argparse.ArgumentParser(prog="graphwidget", description="PyTorch's autograd graph, explained.")
    parser.add_argument("--version", action="version", version=f"graphwidget {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    explain = commands.add_parser(
        "explain", help="run a notebook or script and say what its backward calls freed and met"
    )
    explain.add_argument("file", metavar="FILE", help="a notebook (.ipynb), or Python with `# %%%%` cells (.py)")
    explain.add_argument("--format", choices=[name for name, form in FORMATS.items() if form.program], default="text")
    explain.add_argument("--order", help="cells to run, counted from 1, such as 1,2,3,2 (default: each once)")
    explain.add_argument("--timeout", type=_seconds, help="seconds that one cell may run (default: no limit)")
    explain.set_defaults(run=_explain)

    demo = commands.add_parser("demo", help="open the first lecture notebook in JupyterLab")
    demo.add_argument("--port", type=int, help="port of the server (default: a free one)")
    demo.add_argument("--no-browser", action="store_true", help="only print the URL")
    demo.set_defaults(run=_demo)
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected seconds, got {text!r}") from None
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError("must be more than 0")
    return seconds


def _demo(options: argparse.Namespace) -> int:
    from graphwidget.notebook import demo

    return demo.open_lecture(options.port, browser=not options.no_browser)


def _explain(options: argparse.Namespace) -> int:
    from graphwidget.programs.target import StoppedProgram, UnreadableProgram, order_of, read

    try:
        program = read(options.file)
        order = order_of(options.order, len(program.cells)) if options.order else program.order
    except UnreadableProgram as error:
        return _cannot(error)
    explain = _in_a_kernel if program.needs_jupyter else _in_this_process
    try:
        answer = explain(program, order, options)
    except StoppedProgram as error:
        return _cannot(error)
    except ImportError as error:
        return _cannot(error)
    _write(answer.text)
    return answer.status


def _in_this_process(program: Program, order: Sequence[int], options: argparse.Namespace) -> Answer:
    from graphwidget.programs.target import StoppedProgram, check_torch

    check_torch()
    try:
        from graphwidget.programs import answers, running
    except Exception as error:  # what is imported as torch may be anything
        raise StoppedProgram(f"cannot start: {type(error).__name__}: {error}") from None
    run = running.run(program, order, timeout=options.timeout, progress=_progress)
    return answers.answer(options.format, options.file, run.tracker, run.journal)


def _in_a_kernel(program: Program, order: Sequence[int], options: argparse.Namespace) -> Answer:
    try:
        from graphwidget.programs import client
    except ImportError as error:
        raise ImportError(f"a notebook is run in a Jupyter kernel: pip install ipykernel ({error})") from None
    return client.explain(
        program, order, format_=options.format, file=options.file, timeout=options.timeout, progress=_progress
    )


def _write(answer: str) -> None:
    """To standard output, in UTF-8 whatever the locale says; a reader that has gone is no error."""
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        print(answer, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _cannot(error: Exception) -> int:
    if str(error):  # a kernel that did not start has said why
        print(f"graphwidget: {error}", file=sys.stderr)
    return CANNOT_RUN


def _progress(steps: Iterator[int]) -> Iterator[int]:
    """A progress bar where standard error is a terminal."""
    if not sys.stderr.isatty():
        return steps
    from tqdm import tqdm

    return iter(tqdm(list(steps), unit="cell", file=sys.stderr, delay=2.0, leave=False))


if __name__ == "__main__":
    sys.exit(main())
