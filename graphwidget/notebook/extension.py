"""The IPython extension: it reports to the tracker when cells begin and end, and can be unloaded.

What IPython does that this file has to survive: the cell that loads the extension has an end but no
beginning; so have empty cells; an end may come without a result; cells run inside cells (magics,
`run_cell`), also with other cells' numbers; silent code has neither beginning nor end. An exception in
a callback would overwrite `sys.last_value`, so none gets out.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphwidget import torch_internals
from graphwidget.capture.tracker import Tracker
from graphwidget.model import CellRun, Finding
from graphwidget.notebook import session
from graphwidget.notebook.magics import Magics
from graphwidget.notebook.requests.turns import Turns
from graphwidget.notebook.sources import TrackerSource
from graphwidget.programs.recording import environment

if TYPE_CHECKING:
    from types import FrameType

    from graphwidget.capture.owners.search import Search
    from graphwidget.notebook.trying import Trying
    from graphwidget.notebook.views.widget import AutogradView

__all__ = ["Extension", "load_ipython_extension", "unload_ipython_extension"]

log = logging.getLogger("graphwidget")

UNLOADED = "graphwidget has been unloaded."


@dataclass(eq=False)
class _OpenCell:
    """A cell that is running. `info` is the object that IPython passes at its beginning and at its end."""

    info: object
    number: int | None
    tracked: bool
    began: float = field(default_factory=time.monotonic)


def _quietly(method: Callable[..., None]) -> Callable[..., None]:
    """A callback that raises nothing, not even an interrupt: it must never stop the user's cell."""

    @wraps(method)
    def safe(self: Extension, *args: Any) -> None:
        try:
            method(self, *args)
        except (Exception, KeyboardInterrupt) as error:
            self.trouble(error)

    return safe


class Extension:
    """Everything that `%load_ext graphwidget` sets up in one shell."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.turns = Turns(_to_main_thread(shell))
        self.tracker = self._new_tracker()
        self.on = False
        self.view: AutogradView | None = None
        self._open: list[_OpenCell] = []
        self._rerunning: CellRun | None = None
        # Newer IPythons count a cell before it runs, older ones after it.
        self._counted_first: bool | None = None
        self._seconds: dict[int, float] = {}  # how long cells took, by their numbers
        self._trying: Trying | None = None
        self._folder, self._environment = _folder(), dict(os.environ)
        self.magics = Magics(self)
        # Each access to a bound method makes a new object; these are the ones to unregister.
        self._callbacks = {"pre_run_cell": self._pre_run_cell, "post_run_cell": self._post_run_cell}

    def _new_tracker(self) -> Tracker:
        return Tracker(
            lambda: self.shell.user_ns,
            forecaster=_once_needed("graphwidget.engine.forecast", "forecast"),
            diagnose=_once_needed("graphwidget.diagnosis.diagnose", "diagnose"),
            explain=_once_needed("graphwidget.notebook.notes", "explain_call"),
            shell=self.shell,
            code_names=self._earlier_cell,
            idle=partial(_when_idle, self.shell),
            notebook=hasattr(self.shell, "kernel"),
        )

    def _earlier_cell(self, filename: str) -> tuple[int, None, str] | None:
        """(number, id, source) of a cell that ran before tracking began, by the name it was compiled under."""
        number = getattr(self.shell.compile, "_filename_map", {}).get(filename)
        history = self._history()
        if number is None or not 0 < number < len(history):
            return None
        return number, None, history[number]

    def _history(self) -> Sequence[str]:
        """The sources of the cells that ran, by number; empty where IPython keeps none."""
        return getattr(self.shell.history_manager, "input_hist_raw", ())

    # -- coming and going ------------------------------------------------------------------------------

    def load(self) -> None:
        """Start tracking; this includes the rest of the cell that runs this."""
        for event, callback in self._callbacks.items():
            self.shell.events.register(event, callback)
        self.magics.register()
        self.switch_on()
        for name, lost in torch_internals.missing().items():
            print(f"graphwidget: this torch has no {name}. {lost}", file=sys.stderr)
        self._join_running_cell()

    def unload(self) -> None:
        """Stop tracking and restore everything that was there before. The view keeps its last picture."""
        for event, callback in self._callbacks.items():
            if callback in self.shell.events.callbacks[event]:
                self.shell.events.unregister(event, callback)
        self.magics.unregister()
        self.turns.drop_all(UNLOADED)
        self.switch_off()
        if self.view is not None:
            self.view.stand_still(UNLOADED)
            self.view = None

    def switch_on(self) -> None:
        """Record from now on."""
        if not self.on:
            self.tracker.start()
            environment.follow(self.tracker)
            self.on = True
            self._refresh()

    def switch_off(self) -> None:
        """Stop recording; the record stays."""
        if self.on:
            self.on = False
            self.tracker.stop()
            for cell in self._open:
                cell.tracked = False
            self._refresh()

    def reset(self) -> None:
        """Forget calls, events and ghosts; go on with the live graph."""
        was_on = self.on
        self.switch_off()
        if self._trying is not None:
            self._trying.forget()
        notes = self.tracker.notes
        self.tracker = self._new_tracker()
        self.tracker.notes = notes
        if was_on:
            self.switch_on()
        if self.view is not None:
            self.view.show(self._source())

    def _refresh(self) -> None:
        if self.view is not None:
            self.view.refresh()

    def trouble(self, error: BaseException) -> None:
        """A failure of our own: log it, show it in the widget, go on."""
        if self.view is not None:
            self.view.trouble(error)
        else:
            log.warning("graphwidget: %s", error, exc_info=error)

    # -- cells -------------------------------------------------------------------------------------------

    @_quietly
    def _pre_run_cell(self, info: Any) -> None:
        if self._counted_first is None and info.store_history:
            # This cell is not in the history yet, which begins with an empty entry 0.
            self._counted_first = self.shell.execution_count > len(self._history())
        self._begin(info, info.raw_cell, info.cell_id, info.store_history, self._code_of(info))

    def _code_of(self, info: Any) -> str | None:
        """The cell as IPython will compile it; None: unknown, or nothing will run."""
        if hasattr(info, "transformed_cell"):
            code: str | None = info.transformed_cell
            return code
        # IPython 8 does not say. It transforms cells twice itself, and marks the transformers that would mind.
        manager = self.shell.input_transformer_manager
        steps = [*manager.cleanup_transforms, *manager.line_transforms, *self.shell.input_transformers_post]
        if any(getattr(step, "has_side_effects", False) for step in steps):
            return None
        try:
            transformed: str = self.shell.transform_cell(info.raw_cell)
            return transformed
        except Exception:  # not Python
            return None

    def _begin(
        self,
        info: object,
        source: str,
        cell_id: str | None,
        numbered: bool,
        code: str | None,
        frame: FrameType | None = None,
    ) -> None:
        counter = self.shell.execution_count
        if numbered and self._counted_first:
            counter -= 1
        again, self._rerunning = self._rerunning, None
        if again is not None:
            number, cell_id = again.cell, again.cell_id
        elif numbered:
            number = counter
        else:
            # The body of a cell magic, or code that a cell runs through IPython: part of that cell.
            number = self._open[-1].number if self._open else None
        # Recorded as running before anything can fail: its end will come, whatever happens here.
        cell = _OpenCell(info, number, tracked=False)
        self._open.append(cell)
        self.turns.cell_begins(info, f"In[{number}]" if number is not None else "the running cell")
        if self.on:
            if frame is not None:
                name = frame.f_code.co_filename
            else:
                name = self.shell.compile.get_code_name(source, code or source, counter)
            self.tracker.begin_cell(number, source, cell_id=cell_id, filename=name, code=code, frame=frame)
            cell.tracked = True

    @_quietly
    def _post_run_cell(self, result: Any) -> None:
        info = getattr(result, "info", None)
        error = getattr(result, "error_before_exec", None) or getattr(result, "error_in_exec", None)
        at = self._position(info)
        if at is None:
            return
        ended, self._open = self._open[at:], self._open[:at]
        if ended[0].number is not None:
            self._seconds[ended[0].number] = time.monotonic() - ended[0].began
        try:
            for cell in reversed(ended):
                if cell.tracked:
                    self.tracker.end_cell(error)
            note = self._note(error) if error is not None and any(cell.tracked for cell in ended) else ""
            if note:
                print(note, file=sys.stderr)
            if self.view is not None and self.tracker.busy and not self._open:
                self.view.busy = self.tracker.busy
        finally:
            self.turns.cell_ends(ended[0].info, interrupted=isinstance(error, KeyboardInterrupt))

    def _note(self, error: BaseException) -> str:
        """What to print under an error: the note that it could not take, or what is known if no call raised it."""
        tracker = self.tracker
        if tracker.failures.explained or not tracker.notes:
            return tracker.failures.unsaid
        of_it = [run for run in tracker.runs.values() if run.error == str(error)]
        if not of_it:
            return ""
        from graphwidget.notebook.notes import explain_run

        return explain_run(tracker.record(), of_it[-1])

    def _position(self, info: object) -> int | None:
        """The running cell that ended. No end was reported for the cells above it."""
        for at in range(len(self._open) - 1, -1, -1):
            if self._open[at].info is info:
                return at
        # No result at all: the innermost. The cell that loaded us had no beginning, so nobody knows its info.
        if self._open and (info is None or self._open[-1].info is _LOADING):
            return len(self._open) - 1
        return None

    def _join_running_cell(self) -> None:
        """Begin the cell that loads the extension: nodes that it makes from here on have places, too."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and not (
            frame.f_globals is self.shell.user_global_ns and frame.f_code.co_name == "<module>"
        ):
            frame = frame.f_back
        history = self._history()
        ahead = self.shell.execution_count - len(history)  # of the number that the next cell gets
        if frame is None or not history or ahead not in (-1, 0):
            return
        self._counted_first = ahead == 0
        try:
            self._begin(_LOADING, history[-1], None, True, None, frame)
        except Exception as error:
            self.trouble(error)

    def rerun(self, run: CellRun) -> BaseException | None:
        """Run a recorded cell again under its own number; returns what it raised."""
        self._rerunning = run
        try:
            result = self.shell.run_cell(run.source, store_history=False, cell_id=run.cell_id)
        finally:
            self._rerunning = None
        error: BaseException | None = result.error_before_exec or result.error_in_exec
        return error

    # -- views -------------------------------------------------------------------------------------------

    def _source(self) -> TrackerSource:
        return TrackerSource(self.tracker, lambda: self.shell.user_ns, self.shell, self.with_trials)

    def with_trials(self, findings: Sequence[Finding]) -> tuple[Finding, ...]:
        """Findings with what came of trials."""
        return self._trying.shown(findings) if self._trying is not None else tuple(findings)

    @property
    def trying(self) -> Trying:
        """The trials of this extension, made when they are first asked for."""
        if self._trying is None:
            from graphwidget.notebook.trying import Trying
            from graphwidget.trials import rerun

            begun = replace(rerun.now(""), folder=self._folder, environment=self._environment)
            self._trying = Trying(
                lambda: self.tracker, self._history, lambda: [cell.number for cell in self._open], begun, self._seconds
            )
        return self._trying

    def search(self) -> Search:
        """Every path to a tensor; for looking names up. Drop it before user code runs."""
        return self._source().search()

    def shared_view(self) -> AutogradView:
        """The one widget of this tracker, made when it is first asked for and again after `close()`."""
        from graphwidget.notebook.views.widget import AutogradView

        if self.view is None or self.view.closed:
            self.view = AutogradView(self._source(), self.turns, rerun=self.rerun, trying=self.trying)
        return self.view


_LOADING = object()


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it has been removed
        return "."


def _once_needed(module: str, name: str) -> Callable[..., Any]:
    """A function whose module is imported at its first call, so that it does not slow down `%load_ext`."""

    def call(*args: Any, **options: Any) -> Any:
        return getattr(import_module(module), name)(*args, **options)

    return call


def _to_main_thread(shell: Any) -> Callable[[Callable[[], None]], None] | None:
    """A function that calls another one in the thread that runs cells; None: the shell is not a kernel's."""
    loop = getattr(getattr(shell, "kernel", None), "io_loop", None)
    return loop.add_callback if loop is not None else None


def _when_idle(shell: Any) -> Callable[[float, Callable[[], None]], object] | None:
    """A function that calls another one some seconds after the running cell's answer; None: nobody would wait for it.

    Programs that run notebooks (nbclient, Voila) use only messages before the last cell's answer. They are recognised
    because they cannot be asked for input. And while a window's event loop has the main thread, no call comes in time.
    """
    kernel = getattr(shell, "kernel", None)
    loop = getattr(kernel, "io_loop", None)
    if loop is None or getattr(kernel, "eventloop", None) is not None:
        return None
    request: dict[str, Any] = getattr(kernel, "get_parent", dict)()
    return loop.call_later if request.get("content", {}).get("allow_stdin") else None


def load_ipython_extension(shell: Any) -> None:
    """Start tracking in `shell`. Loading twice changes nothing."""
    if not session.is_loaded(shell):
        extension = Extension(shell)
        session.add(shell, extension)
        extension.load()


def unload_ipython_extension(shell: Any) -> None:
    """Stop tracking in `shell` and restore everything. Without a load it does nothing."""
    extension = session.remove(shell)
    if extension is not None:
        extension.unload()
