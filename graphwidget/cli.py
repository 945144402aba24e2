"""The command line: explain a program, run one, open the first lecture.

    graphwidget explain [--format FORMAT | --diff] [--order 1,2,3,2] [--timeout SECONDS] [--try | --no-try]
                        [--try-seconds SECONDS] TARGET [ARGS...]
    graphwidget explain [...] -m PACKAGE.MODULE [ARGS...]
    graphwidget run [-o FILE.gwz] [--max-mb N] TARGET [ARGS...]
    graphwidget run [...] -m PACKAGE.MODULE [ARGS...]
    graphwidget demo [--port PORT] [--no-browser]

What follows TARGET is the program's own; behind a notebook or a file with `# %%` cells options of ours may stand, too.
Exit status of `explain`: 0 the program ran to its end and no finding has severity error; 1 it raised, or a finding has
severity error; 2 the target cannot be read or started, it was stopped before its end (`--timeout`, Ctrl+C: what it did
until then is explained), or the command line is wrong. Exit status of `run`: the program's own, or 2 if there was none
to run.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shlex
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphwidget.programs.journal import Answer
    from graphwidget.programs.target import Program, Start

CANNOT_RUN = 2
RECORDS = ".gwz"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status. `run` raises what its program raises: only Python's top may catch it."""
    options = _parser().parse_args(arguments)
    options.alone = arguments is None  # so nothing else has run in this process
    status: int = options.run(options)
    return status


def _parser() -> argparse.ArgumentParser:
    from graphwidget import __version__

    parser = argparse.ArgumentParser(prog="graphwidget", description="PyTorch's autograd graph, explained.")
    parser.add_argument("--version", action="version", version=f"graphwidget {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    explain = commands.add_parser(
        "explain", help="run a notebook or script, or open a record, and say what its backward calls freed and met"
    )
    _add_options(explain)
    _add_target(explain, "a notebook (.ipynb), Python with `# %%%%` cells, a plain script (.py), or a record (.gwz)")
    explain.set_defaults(run=_explain)

    run = commands.add_parser(
        "run", help="run a script as Python does, and explain under a traceback why a call failed"
    )
    run.add_argument("-o", dest="output", metavar="FILE.gwz", help="write a record, for `graphwidget explain FILE.gwz`")
    run.add_argument(
        "--max-mb", type=_megabytes, default=64.0, metavar="N", help="bound of a record, in megabytes (default: 64)"
    )
    _add_target(run, "a script, or a notebook (.ipynb)")
    run.set_defaults(run=_run)

    demo = commands.add_parser("demo", help="open the first lecture notebook in JupyterLab")
    demo.add_argument("--port", type=int, help="port of the server (default: a free one)")
    demo.add_argument("--no-browser", action="store_true", help="only print the URL")
    demo.set_defaults(run=_demo)
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    from graphwidget.exports.formats import FORMATS

    formats = [name for name, form in FORMATS.items() if form.program]
    parser.add_argument("--format", choices=formats, default="text")
    parser.add_argument(
        "--diff",
        dest="format",
        action="store_const",
        const="diff",
        help="write the first fix as a patch for `git apply`: of files below this folder",
    )
    tried = parser.add_mutually_exclusive_group()
    tried.add_argument(
        "--try",
        dest="wanted",
        action="store_true",
        default=None,
        help="run the program again with each fix, at most three times, and say what came of it "
        "(default: if it took less than a minute, and did nothing else outside but write files that can be put back)",
    )
    tried.add_argument("--no-try", dest="wanted", action="store_false", default=None, help="never run it again")
    parser.add_argument(
        "--try-seconds",
        type=_seconds,
        help="seconds that the program may run in each trial (default: 10, or twice what it took)",
    )
    parser.add_argument("--order", help="cells to run, counted from 1, such as 1,2,3,2 (default: each once)")
    parser.add_argument(
        "--timeout", type=_seconds, help="seconds that one cell, or a plain script, may run (default: no limit)"
    )


def _options_behind(start: Start, options: argparse.Namespace) -> Start:
    """For a program with cells options of ours may also follow TARGET, where they stood in the first version."""
    parser = argparse.ArgumentParser(prog="graphwidget explain", add_help=False, allow_abbrev=False)
    _add_options(parser)
    _, arguments = parser.parse_known_args(start.arguments, namespace=options)
    return replace(start, arguments=tuple(arguments))


def _tell_of_options(start: Start, text: str) -> None:
    """Say that options of ours stood behind a plain program whose text has no such word, so that they did nothing."""
    parser = argparse.ArgumentParser(add_help=False)
    _add_options(parser)
    ours = set(re.findall(r"--[\w-]+", parser.format_usage()))
    given = [word for word in (one.partition("=")[0] for one in start.arguments) if word in ours and word not in text]
    if given and text:
        said = f"graphwidget: {', '.join(given)} went to {start.target}. Options of graphwidget stand before it:"
        print(f"{said} graphwidget explain OPTIONS {shlex.quote(start.target)}", file=sys.stderr)


def _add_target(parser: argparse.ArgumentParser, what: str) -> None:
    """Options of ours stand before the target, what follows it is the program's."""
    parser.add_argument("-m", dest="module", action="store_true", help="TARGET is the name of a module")
    parser.add_argument("program", nargs=argparse.PARSER, metavar="TARGET", help=f"{what}, and its arguments")


def _start_of(options: argparse.Namespace) -> Start:
    from graphwidget.programs.target import Start

    target, *arguments = options.program[1:] if options.program[0] == "--" else options.program
    return Start(target, tuple(arguments), options.module)


def _is_container(path: str) -> bool:
    """Whether Python runs `__main__` in it: a folder that has one, or an archive."""
    return os.path.isfile(os.path.join(path, "__main__.py")) or (os.path.isfile(path) and zipfile.is_zipfile(path))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected seconds, got {text!r}") from None
    if not 0 < seconds < 1e9:
        raise argparse.ArgumentTypeError("must be more than 0")
    return seconds


def _megabytes(text: str) -> float:
    from graphwidget.record.recording import check_bound

    try:
        bound = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected megabytes, got {text!r}") from None
    try:
        check_bound(bound)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return bound


def _demo(options: argparse.Namespace) -> int:
    from graphwidget.notebook import demo

    return demo.open_lecture(options.port, browser=not options.no_browser)


def _explain(options: argparse.Namespace) -> int:
    from graphwidget.programs.recording import environment
    from graphwidget.programs.target import StoppedProgram, UnreadableProgram, order_of, read

    start = _start_of(options)
    if start.target.endswith(RECORDS) and not start.module:
        return _explain_record(_options_behind(start, options), options)
    environment.take()  # `explain` records nothing: it runs a program several times
    try:
        if start.target == "-":
            raise UnreadableProgram("-: `explain` may run a program several times; `run -` takes standard input")
        program = None if start.module or _is_container(start.target) else read(start.target)
        if program is None or program.plain:
            if options.order:
                raise UnreadableProgram(f"--order {options.order}: there are no cells in {start.target}")
            answer = _in_a_process(start, options)
            _tell_of_options(start, program.cells[0] if program is not None else "")
        else:
            start = _options_behind(start, options)
            if program.notebook and start.arguments:
                raise UnreadableProgram(
                    f"{start.target}: a notebook takes no arguments, and options of graphwidget stand before its name"
                )
            order = order_of(options.order, len(program.cells)) if options.order else program.order
            explain = _in_a_kernel if program.needs_jupyter else _in_this_process
            answer = explain(program, order, start, options)
    except (UnreadableProgram, StoppedProgram, ImportError) as error:
        return _cannot(error)
    status = _answer(answer.text, answer.status, options)
    if answer.stopped:
        print(f"graphwidget: {answer.stopped}", file=sys.stderr)
        return CANNOT_RUN
    return status


def _explain_record(start: Start, options: argparse.Namespace) -> int:
    """A record is read and not run: that needs no torch."""
    from graphwidget.record.problems import UnreadableRecord
    from graphwidget.record.run_record import load

    try:
        if start.arguments or options.order:
            raise UnreadableRecord(f"{start.target}: a record is only read: it takes no arguments and no --order")
        record = load(start.target)
        return _answer(record.explain(options.format), record.status, options)
    except (UnreadableRecord, ImportError) as error:
        return _cannot(error)


def _answer(text: str, status: int, options: argparse.Namespace) -> int:
    if options.format == "diff" and not text:
        print("graphwidget: no fix is an edit of a file below this folder", file=sys.stderr)
    else:
        _write(text)
    return status


def _in_a_process(start: Start, options: argparse.Namespace) -> Answer:
    from graphwidget.programs import process

    return process.explain(start, format_=options.format, timeout=options.timeout, **_trials(options))


def _in_this_process(program: Program, order: Sequence[int], start: Start, options: argparse.Namespace) -> Answer:
    from graphwidget.programs.target import StoppedProgram, check_torch

    check_torch()
    try:
        from graphwidget.programs import answers, running, trying  # noqa: F401 (for its forks)
        from graphwidget.trials import asked, children, effects, rerun
    except Exception as error:  # what is imported as torch may be anything
        raise StoppedProgram(f"cannot start: {type(error).__name__}: {error}") from None
    forks = children.Forks.begin() if options.alone and options.wanted is not False else None
    again = rerun.now(start.target, start.arguments)
    seen = effects.watch(again.folder)
    wish = asked.Asked(options.wanted, again, seen, options.try_seconds, forks)
    run = running.run(
        program, order, arguments=start.arguments, timeout=options.timeout, progress=_progress, begin=seen.follow
    )
    wish = wish.with_cells(program.cells, order)
    answer = answers.answer(options.format, start, run.tracker, run.journal, asked=wish)
    return replace(answer, stopped=run.stopped)


def _in_a_kernel(program: Program, order: Sequence[int], start: Start, options: argparse.Namespace) -> Answer:
    try:
        from graphwidget.programs import client
    except ImportError as error:
        raise ImportError(f"a notebook is run in a Jupyter kernel: pip install ipykernel ({error})") from None
    return client.explain(
        program,
        order,
        format_=options.format,
        start=start,
        timeout=options.timeout,
        progress=_progress,
        **_trials(options),
    )


def _trials(options: argparse.Namespace) -> dict[str, Any]:
    return {"wanted": options.wanted, "try_seconds": options.try_seconds}


def _run(options: argparse.Namespace) -> int:
    from graphwidget.programs.recording import environment
    from graphwidget.programs.target import StoppedProgram, UnreadableProgram, check_torch

    start = _start_of(options)
    try:
        if start.target.endswith(".ipynb") and not start.module:
            if options.output is not None:
                raise UnreadableProgram(
                    f"{start.target}: `run -o` takes Python; a notebook is recorded where GRAPHWIDGET_RECORD is set"
                )
            return _run_notebook(start)
        asked = environment.take()  # before torch is imported, with which a tracker of the environment's starts
        check_torch()
        try:
            from graphwidget.programs import script
            from graphwidget.programs.recording import records
        except Exception as error:  # what is imported as torch may be anything
            raise StoppedProgram(f"cannot start: {type(error).__name__}: {error}") from None
        written = records.Records(start, options.output, asked, options.max_mb)
        script.run(start, written.end, written.begin, written.end_in_fork)
    except (UnreadableProgram, StoppedProgram) as error:
        return _cannot(error)
    return 0


def _run_notebook(start: Start) -> int:
    """Run a notebook as Jupyter does: its cells are no script."""
    from graphwidget.programs.target import UnreadableProgram, read

    program = read(start.target)
    if start.arguments:
        raise UnreadableProgram(f"{start.target}: a notebook takes no arguments")
    try:
        from graphwidget.programs import client
    except ImportError as error:
        raise UnreadableProgram(f"a notebook is run in a Jupyter kernel: pip install ipykernel ({error})") from None
    return client.run(program, start)


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
