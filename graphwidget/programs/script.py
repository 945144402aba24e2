"""Run a plain script or a module as Python runs it, with the tracker on.

It becomes `__main__` of this process. What it raises goes on to the top, so that everything at a program's end is
Python's own: the exit status, `sys.excepthook`, Ctrl+C, threads that are still running, and what `atexit` runs.
"""

from __future__ import annotations

import atexit
import builtins
import os
import sys
from collections.abc import Callable
from functools import partial
from importlib.machinery import BuiltinImporter, ModuleSpec, PathFinder, SourceFileLoader, SourcelessFileLoader
from importlib.util import decode_source, find_spec
from pkgutil import get_importer
from types import CodeType, ModuleType, TracebackType
from typing import Any, NamedTuple, cast

from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.engine.forecast import forecast
from graphwidget.notebook.notes import explain_call
from graphwidget.programs.journal import Journal
from graphwidget.programs.posing import pose
from graphwidget.programs.target import Start, UnreadableProgram

__all__ = ["Main", "Report", "main_of", "run"]

# Called with what was recorded, what the program raised, and the name of its file.
Report = Callable[[Tracker, Journal, str], None]


_STDIN = "<stdin>"  # what Python calls a program that it reads there

_replaced: list[ModuleType] = []  # what was `__main__` before: its code goes on when the program has ended


class Main(NamedTuple):
    """What is to run as `__main__`; `source` is empty where nobody has the text."""

    module: ModuleType
    code: CodeType
    source: str


def run(
    start: Start,
    report: Report,
    begin: Callable[[Tracker, Journal], None] | None = None,
    in_fork: Callable[[Tracker], None] = lambda tracker: None,
) -> None:
    """Run a program, once in a process.

    Parameters
    ----------
    start
        What to run, and its arguments.
    report
        Called when all of the program has ended, also its threads and what it registered with `atexit`. It is not
        called where a program ends its process in another way: by a signal, or by `os._exit`.
    begin
        Called with the tracker and the journal before the program begins.
    in_fork
        Called with the tracker when a fork of the program ends as the program does.

    Raises
    ------
    UnreadableProgram
        If there is no such file or module.
    BaseException
        Whatever the program raises. It is for Python to deal with: catch it nowhere.
    """
    tracker = Tracker(
        forecaster=forecast,
        diagnose=diagnose,
        explain=partial(explain_call, more=start.explained_by),
    )
    journal = Journal(place_of=tracker.place_of_error, steps=1)
    tracker.start()
    if begin is not None:
        begin(tracker, journal)
    main: Main | None = None
    try:
        main = main_of(start)
        _replaced.append(sys.modules["__main__"])
        sys.modules["__main__"] = main.module
        # What is registered first is called last.
        atexit.register(_end, os.getpid(), partial(report, tracker, journal, main.code.co_filename), in_fork, tracker)
        name = main.code.co_filename
        own = tracker.own_code(name)  # not where an installed program runs the user's code, as pytest
        tracker.begin_cell(
            None,
            "" if own else main.source,
            filename=name if own or name == _STDIN else None,
            script=main.code if own else None,
        )
        exec(main.code, main.module.__dict__)
    except UnreadableProgram:
        tracker.stop()
        raise
    except BaseException as error:
        if main is None:  # its text is no Python, or a package around it raised
            atexit.register(_end, os.getpid(), partial(report, tracker, journal, start.target), in_fork, tracker)
        traceback = _without_ours(error.__traceback__)
        journal.note(error, None, None, _line(error, traceback, main))
        journal.stopped = isinstance(error, KeyboardInterrupt)
        if not isinstance(error, SystemExit):
            sys.last_traceback = traceback  # Python sets it next: what its frames keep belongs to the last graph
        tracker.end_cell(error)
        _show_as_python_does(traceback, tracker)
        raise


def _end(process: int, report: Callable[[], None], in_fork: Callable[[Tracker], None], tracker: Tracker) -> None:
    """Report, in the process of the program itself: a fork of it also calls what was registered."""
    try:
        tracker.end_cell()
        if os.getpid() == process:
            report()
        else:
            in_fork(tracker)
    except Exception as error:
        tracker.problems.note(error)
    tracker.stop()


# -- what runs as `__main__` --------------------------------------------------------------------------------


def main_of(start: Start) -> Main:
    """What Python would run as `__main__`; puts its arguments and its folder in their places.

    Raises
    ------
    UnreadableProgram
        If there is no such file or module.
    """
    if start.module:
        return _module(start)
    if start.target == "-":
        return _standard_input(start)
    return _container(start) if get_importer(start.target) is not None else _file(start)


def _standard_input(start: Start) -> Main:
    pose([start.target, *start.arguments], "")
    text = sys.stdin.buffer.read()
    module = _main_module(_STDIN, BuiltinImporter)
    return Main(module, compile(text, _STDIN, "exec", dont_inherit=True), decode_source(text))


def _container(start: Start) -> Main:
    """`__main__` of a folder, or of an archive."""
    path = os.path.abspath(start.target)
    spec = PathFinder.find_spec("__main__", [path])
    if spec is None:
        raise UnreadableProgram(f"{start.target}: a directory or an archive without a `__main__.py`")
    pose([start.target, *start.arguments], path)
    loader: Any = spec.loader
    return Main(_main_module(spec.origin, loader, spec), loader.get_code("__main__"), _source(loader, "__main__"))


def _file(start: Start) -> Main:
    path = os.path.abspath(start.target)
    if path.endswith(".pyc") and os.path.isfile(path):
        pose([start.target, *start.arguments], os.path.dirname(os.path.realpath(path)))
        compiled = SourcelessFileLoader("__main__", path)
        return Main(_main_module(path, compiled), cast(CodeType, compiled.get_code("__main__")), "")
    loader = SourceFileLoader("__main__", path)
    try:
        text = loader.get_data(path)
    except OSError as error:
        raise UnreadableProgram(f"{start.target}: {error.strerror or error}") from None
    pose([start.target, *start.arguments], os.path.dirname(os.path.realpath(path)))
    code = compile(text, path, "exec", dont_inherit=True)
    return Main(_main_module(path, loader), code, decode_source(text))


def _module(start: Start) -> Main:
    pose(["-m", *start.arguments], os.getcwd())
    spec = _spec(start.target)
    loader: Any = spec.loader
    code = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
    if code is None:
        raise UnreadableProgram(f"-m {start.target}: there is no Python code in {spec.origin or 'it'}")
    sys.argv[0] = str(spec.origin)
    return Main(_main_module(spec.origin, loader, spec), code, _source(loader, spec.name))


def _source(loader: Any, name: str) -> str:
    try:
        return loader.get_source(name) or ""
    except (AttributeError, ImportError):  # code without its text
        return ""


def _spec(name: str) -> ModuleSpec:
    """Find a module, or `__main__` of a package; imports the packages around it.

    Raises
    ------
    UnreadableProgram
        If there is none. What a package raises when it is imported is its own error.
    """
    if not all(name.split(".")):
        raise UnreadableProgram(f"-m {name}: expected a module's whole name, such as package.module")
    try:
        spec = find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        spec = None
    if spec is None and name.endswith(".__main__"):
        raise UnreadableProgram(f"-m {name.removesuffix('.__main__')}: is a package without a module `__main__`")
    if spec is None:
        raise UnreadableProgram(f"-m {name}: no such module can be found from here or where Python looks for modules")
    if spec.submodule_search_locations is not None:
        return _spec(f"{name}.__main__")
    return spec


def _main_module(file: str | None, loader: Any, spec: ModuleSpec | None = None) -> ModuleType:
    """An empty module with the names that Python gives `__main__`."""
    module = ModuleType("__main__")
    module.__dict__.update(
        __file__=file,
        __cached__=spec.cached if spec is not None else None,
        __loader__=loader,
        __package__=spec.parent if spec is not None else None,
        __spec__=spec,
        __builtins__=builtins,
    )
    if sys.version_info < (3, 14):
        module.__annotations__ = {}
    return module


# -- what it raised -----------------------------------------------------------------------------------------


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """The program's part of a traceback."""
    while traceback is not None and traceback.tb_frame.f_globals is globals():
        traceback = traceback.tb_next
    return traceback


def _line(error: BaseException, traceback: TracebackType | None, main: Main | None) -> int | None:
    """Line of the outermost frame in the program's file; of a file that is no Python, the line that is not."""
    if main is None:
        return error.lineno if isinstance(error, SyntaxError) and traceback is None else None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == main.code.co_filename:
            return traceback.tb_lineno
        traceback = traceback.tb_next
    return None


def _show_as_python_does(traceback: TracebackType | None, tracker: Tracker) -> None:
    """Have whatever shows the error that is on its way show the program's part of its traceback."""
    theirs = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, _whole: TracebackType | None) -> None:
        sys.excepthook = theirs
        sys.last_traceback = traceback
        theirs(kind, error.with_traceback(traceback), traceback)
        if tracker.failures.unsaid:
            print(tracker.failures.unsaid, file=sys.stderr)

    sys.excepthook = show
