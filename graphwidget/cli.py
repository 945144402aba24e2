"""The command line: explain a file, open the first lecture.

    graphwidget explain FILE [--format text|json|html] [--order 1,2,3,2] [--timeout SECONDS]
    graphwidget demo [--port PORT] [--no-browser]

Exit status of `explain`: 0 nothing wrong, 1 a finding of severity error, 2 the file cannot be read or run. An error in
a cell that has nothing to do with autograd is printed, and is no finding.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphwidget.model import Finding
    from graphwidget.notebook.running import Outcome

CANNOT_RUN = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _parser() -> argparse.ArgumentParser:
    from graphwidget import __version__

    parser = argparse.ArgumentParser(prog="graphwidget", description="PyTorch's autograd graph, explained.")
    parser.add_argument("--version", action="version", version=f"graphwidget {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    explain = commands.add_parser(
        "explain", help="run a notebook or script and say what its backward calls freed and met"
    )
    explain.add_argument("file", metavar="FILE", help="a notebook (.ipynb), or Python with `# %%%%` cells (.py)")
    explain.add_argument("--format", choices=("text", "json", "html"), default="text")
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
    from graphwidget.programs import UnreadableProgram, order_of, read

    try:
        program = read(options.file)
        order = order_of(options.order, len(program.cells)) if options.order else None
    except UnreadableProgram as error:
        return _cannot(error)
    from graphwidget.notebook.running import StoppedProgram, run

    try:
        outcome = run(program, order, timeout=options.timeout, progress=_progress)
    except StoppedProgram as error:
        return _cannot(error)
    findings = outcome.tracker.findings()
    try:
        answer = _FORMATS[options.format](outcome, findings, options.file)
    except ImportError as error:
        return _cannot(error)
    _write(answer)
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def _write(answer: str) -> None:
    """To standard output, in UTF-8 whatever the locale says; a reader that has gone is no error."""
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        print(answer, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _cannot(error: Exception) -> int:
    print(f"graphwidget: {error}", file=sys.stderr)
    return CANNOT_RUN


def _progress(steps: Iterator[int]) -> Iterator[int]:
    """A progress bar where standard error is a terminal."""
    if not sys.stderr.isatty():
        return steps
    from tqdm import tqdm

    return iter(tqdm(list(steps), unit="cell", file=sys.stderr, delay=2.0, leave=False))


def _json(outcome: Outcome, findings: Sequence[Finding], file: str) -> str:
    import torch

    from graphwidget.render import report

    errors = [asdict(error) for error in outcome.errors]
    version = torch.__version__.split("+")[0]
    document = report.document(file, version, errors, outcome.record.calls, findings, outcome.cell)
    return json.dumps(document, ensure_ascii=False, indent=1)


def _text(outcome: Outcome, findings: Sequence[Finding], file: str) -> str:
    import torch

    from graphwidget.render import report

    errors = [asdict(error) for error in outcome.errors]
    document = report.document(file, torch.__version__.split("+")[0], errors, (), ())
    return report.text(document, outcome.record.calls, findings).rstrip("\n")


def _html(outcome: Outcome, findings: Sequence[Finding], file: str) -> str:
    from graphwidget.render import picture

    return picture.to_html(outcome.tracker.drawing(), title=file)


_FORMATS = {"json": _json, "text": _text, "html": _html}


if __name__ == "__main__":
    sys.exit(main())
