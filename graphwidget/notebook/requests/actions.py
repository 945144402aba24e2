"""Serves the requests of the page. Each one is answered, also after an error; no text of it is ever evaluated.

A message is one of the `VERBS` (`requests.py`). It is checked there, and here against what the picture offered. The
answer is ``{"id": 17, "ok": true, "result": {...}}`` or ``{"id": 17, "ok": false, "error": {"message": ..., "next":
...}}``. A request that has to wait for a cell gets an answer at once: ``{"id": 17, "queued": {"behind": "In[7]"}}``. If
it is taken back before its turn, that is a result and no error.

Messages may be handled in any thread. What runs user code (`backward`, `rebuild`) takes its turn (`turns.py`);
everything else only reads plain data.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphwidget.capture.lines.own_code import outermost
from graphwidget.engine import forecast as engine
from graphwidget.exports.formats import FORMATS, export
from graphwidget.model import BackwardCall, CellRun, Event, Snapshot, bytes_text
from graphwidget.notebook.requests.offers import Offer, Offers
from graphwidget.notebook.requests.turns import Job, Turns
from graphwidget.notebook.requests.verbs import VERBS, Refused, Request, checked, number_of
from graphwidget.notebook.sources import OutOfDate, Source
from graphwidget.notebook.trying import CannotTry, Clicked, Trying
from graphwidget.render.wire import encode
from graphwidget.render.words import count
from graphwidget.replies import forecasts
from graphwidget.replies.comparisons import compared, picture_of
from graphwidget.replies.memory import inspection, keeping
from graphwidget.replies.moments import before, moment
from graphwidget.replies.predictions import PagePrediction
from graphwidget.replies.steps import Stepping

if TYPE_CHECKING:
    import torch

__all__ = ["Actions"]

log = logging.getLogger("graphwidget")

OUT_OF_DATE = "This picture is out of date"
AGAIN = "Run %load_ext graphwidget and %graphwidget for a new view."
LOOK_AGAIN = "Look at the picture again: it shows what is there now."
NEARBY = "Choose the end of a cell."
# What a job is called, of each verb that takes a turn.
_JOBS = {"backward": "backward", "predict": "backward", "rebuild": "Rebuild", "steps_ahead": "Steps"}


class Actions:
    """Serves one view's requests.

    Parameters
    ----------
    offers
        What the picture on the page offers.
    turns
        Shared by all views of a kernel.
    send
        Sends an answer to the page; must not raise.
    refresh
        Draws the picture again; must not raise.
    rerun
        Runs a recorded cell again and returns what it raised; None where no cells are recorded.
    trying
        Tries fixes; None where no cells are recorded.

    Attributes
    ----------
    source
        Finds tensors and draws; None: there is nothing to act on.
    """

    def __init__(
        self,
        offers: Offers,
        turns: Turns,
        send: Callable[[dict[str, Any]], None],
        refresh: Callable[[], None],
        *,
        rerun: Callable[[CellRun], BaseException | None] | None = None,
        trying: Trying | None = None,
    ) -> None:
        self.source: Source | None = None
        self._offers = offers
        self._turns = turns
        self._send = send
        self._refresh = refresh
        self._rerun = rerun
        self._trying = trying
        self._clicked = Clicked()
        self._why_not: str | None = None
        self._stepping = Stepping()

    def refuse_all(self, why: str) -> None:
        """From now on every request is refused with `why`."""
        self._why_not = why
        self._clicked.cancel()

    def _tracked(self) -> Source:
        if self.source is None:
            raise Refused(self._why_not or "Nothing is tracked.", AGAIN)
        return self.source

    # -- asking and answering ------------------------------------------------------------------------

    def handle(self, message: object) -> None:
        """Serve one message. Never raises."""
        id = number_of(message)
        try:
            if self._why_not is not None:
                raise Refused(self._why_not, AGAIN)
            request = checked(message)
            if VERBS[request.verb].long:
                threading.Thread(target=self._answer, args=(request,), daemon=True).start()
            elif VERBS[request.verb].takes_turn:
                self._turns.submit(self._job(request))
            else:
                self._answer(request)
        except Refused as refusal:
            self._refuse(id, refusal)
        except Exception as error:
            self._failed(id, error)

    def _answer(self, request: Request) -> None:
        """Serve a request and answer. Never raises."""
        try:
            result = getattr(self, f"_{request.verb}")(**request.arguments)
            self._send({"id": request.id, "ok": True, "result": result})
        except Refused as refusal:
            self._refuse(request.id, refusal)
        except Exception as error:
            self._failed(request.id, error)

    def _refuse(self, id: int | None, refusal: Refused) -> None:
        self._send({"id": id, "ok": False, "error": {"message": str(refusal), "next": refusal.next}})

    def _failed(self, id: int | None, error: Exception) -> None:
        log.warning("graphwidget: a request failed", exc_info=error)
        message = f"graphwidget failed: {type(error).__name__}: {error}"
        self._refuse(id, Refused(message, "Nothing else is affected. Please report it."))

    def _job(self, request: Request) -> Job:
        offer = self._offer(request.arguments["root"])
        return Job(
            request.id,
            f"{_JOBS[request.verb]} of {offer.ref.path or 'a tensor'}",
            lambda: self._answer(request),
            lambda behind: self._send({"id": request.id, "queued": {"behind": behind}}),
            lambda why: self._send({"id": request.id, "ok": True, "result": {"said": _message(why)}}),
            main=request.verb == "rebuild",
        )

    def _offer(self, root: int) -> Offer:
        offer = self._offers.current.get(root)
        if offer is None:
            raise Refused(f"{OUT_OF_DATE}: that root is gone, or has been computed again.", LOOK_AGAIN)
        return offer

    # -- verbs that only read --------------------------------------------------------------------------

    def _ping(self) -> dict[str, Any]:
        return {"busy": self._turns.busy}

    def _cancel(self, request: int) -> dict[str, Any]:
        done = self._turns.cancel(request)
        if done is None and self._clicked.cancel():
            return {"cancelled": request}
        if done is False:
            raise Refused("It is running already.", "Interrupt the kernel to stop it.")
        if done is None:
            raise Refused("There is nothing to cancel: that request has been answered.")
        return {"cancelled": request}

    def _forecast(self, root: int) -> dict[str, Any]:
        offer, drawing = self._offer(root), self._offers.drawing
        snapshot = drawing.snapshot
        return {
            name: forecasts.shown(
                snapshot,
                drawing.calls,
                engine.forecast(snapshot, [offer.ref], retain_graph=keep, grad_given=True),
            )
            for name, keep in (("backward", False), ("retain", True))
        }

    def _snapshot(self, event: int) -> dict[str, Any]:
        found, snapshot = self._moment(event)
        return {"wire": moment(self._offers.drawing, found, self._offers.past(snapshot))}

    def _moment(self, event: int) -> tuple[Event, Snapshot]:
        """A stored moment, and its graph."""
        found = next((e for e in self._offers.drawing.events if e.id == event), None)
        if found is None:
            raise Refused(f"{OUT_OF_DATE}: that moment is not on the timeline.", LOOK_AGAIN)
        if found.snapshot is None:
            raise Refused("The graph of that moment was dropped to bound memory.", "Choose a later one.")
        return found, found.snapshot

    def _compare(self, before: int, after: int) -> dict[str, Any]:
        """What changed between two stored moments, and the later one with what has died since as ghosts."""
        first, then = self._moment(min(before, after))
        last, now = self._moment(max(before, after))
        if first.held_bytes is None or last.held_bytes is None:
            raise Refused("At one of the moments not all graphs were looked at, so what changed is not known.", NEARBY)
        comparison = then.compare(now)
        events = self._offers.drawing.events
        picture = picture_of(comparison, [e.snapshot for e in events if e.snapshot and first.id < e.id < last.id])
        shown = replace(last, snapshot=picture)
        return compared(comparison) | {"wire": moment(self._offers.drawing, shown, self._offers.past(picture))}

    def _steps_of(self, call: int) -> dict[str, Any]:
        """A recorded call node by node, and the picture just before it."""
        drawing = self._offers.drawing
        found = next((each for each in drawing.calls if each.n == call), None)
        if found is None:
            raise Refused(f"{OUT_OF_DATE}: that call is not remembered.", LOOK_AGAIN)
        steps = self._stepping.of_call(found)
        if not steps["known"] or found.graph is None:
            return {**steps, "wire": None}
        then = before(found, found.graph, drawing.events, drawing.calls)
        return {**steps, "wire": encode(then, call, self._offers.past(found.graph))}

    def _steps_ahead(self, root: int, retain_graph: bool) -> dict[str, Any]:
        """A call that has not been made, node by node: on the tensor that has this root's path now."""
        source = self._tracked()
        tensor = self._tensor(source, self._offer(root))
        return {**self._stepping.ahead(source.graph(tensor), retain_graph), "wire": None}

    def _more_steps(self, walk: int, at: int) -> dict[str, Any]:
        found = self._stepping.more(walk, at)
        if found is None:
            raise Refused("The call that is stepped through is another one by now.", "Choose it again.")
        return found

    def _keepers(self) -> dict[str, Any]:
        return keeping(self._offers.drawing)

    def _export(self, format: str) -> dict[str, Any]:
        """The picture on the page as the content of a file."""
        form = FORMATS[format]
        try:
            text = export(self._offers.drawing, format)
        except ImportError as error:
            raise Refused(f"{form.label} is not available here: {error}") from None
        return {"text": text, "name": f"autograd-graph{form.suffix}", "type": form.media_type}

    def _inspect(self, uid: int) -> dict[str, Any]:
        snapshot = self._offers.drawing.snapshot
        index = snapshot.index_of.get(uid)
        if index is None:
            raise Refused(f"{OUT_OF_DATE}: that node is gone.", LOOK_AGAIN)
        return inspection(snapshot, index)

    # -- verbs that run the user's graph or code ---------------------------------------------------------

    def _backward(self, root: int, retain_graph: bool, keep_grad: bool, confirmed: int) -> dict[str, Any]:
        """The real call, on the tensor that has this root's path now. Its error is a result, not a failure.

        One that would raise runs only if `confirmed` is the key of that very question; else the question is the result.
        """
        offer = self._offer(root)
        source = self._tracked()
        tensor = self._tensor(source, offer)
        what = _written(offer, retain_graph)
        asks = self._asks(source, tensor, what, retain_graph, keep_grad)
        if asks is not None and asks["key"] != confirmed:
            return {"asks": asks}
        return self._run(source, tensor, what, retain_graph, keep_grad)

    def _run(
        self, source: Source, tensor: torch.Tensor, what: str, retain_graph: bool, keep_grad: bool
    ) -> dict[str, Any]:
        """Make a call and say what it did."""
        tracker = source.tracker
        before = {call.n for call in tracker.calls} if tracker else set()
        raised: dict[str, Any] | None = None
        try:
            with tracker.log.pressed() if tracker else nullcontext():
                _run_backward(tensor, retain_graph, source.retaining() if keep_grad else None)
        except BaseException as error:  # KeyboardInterrupt too: the kernel goes on
            raised = {"type": type(error).__name__, "message": str(error), "uid": None}
        finally:
            del tensor
        call = next((call for call in tracker.calls if call.n not in before), None) if tracker else None
        if raised is not None and call is not None:
            raised["uid"] = call.failed_uid
        self._refresh()
        return {
            "raised": raised,
            "call": call.n if call else None,
            "freedSlots": call.freed_slots if call else None,
            "freedBytes": call.freed_bytes if call else None,
            "said": _said_after(what, raised, call, keep_grad),
        }

    def _asks(
        self, source: Source, tensor: torch.Tensor, what: str, retain_graph: bool, keep_grad: bool
    ) -> dict[str, Any] | None:
        """The question before a call, by a forecast of now; None: the call would not raise, or this is unknown."""
        try:
            graph = source.graph(tensor)
            forecast = engine.forecast(graph, graph.roots, retain_graph=retain_graph, grad_given=True)
            calls = source.tracker.calls if source.tracker else ()
            if forecast.ok is False:
                return forecasts.question(what, forecast, calls, keeps_grad=keep_grad)
        except Exception as error:  # nothing of ours keeps a call from running
            log.warning("graphwidget: no forecast before a click", exc_info=error)
        return None

    def _tensor(self, source: Source, offer: Offer) -> torch.Tensor:
        try:
            return source.tensor(offer.ref, offer.uid)
        except OutOfDate as error:
            self._refresh()
            raise Refused(f"{OUT_OF_DATE}: {error}", LOOK_AGAIN) from None

    def _predict(
        self, root: int, retain_graph: bool, keep_grad: bool, fails: str, fails_at: int, frees: list[list[int]] | None
    ) -> dict[str, Any]:
        """The real call, after somebody has said what it does: compared with what it did.

        It is made also if it would raise: a question before would give the answer away. The page says so beforehand.
        """
        offer = self._offer(root)
        source = self._tracked()
        if source.tracker is None:
            raise Refused("What a call did is recorded only while graphwidget tracks.", "Run %load_ext graphwidget.")
        tensor = self._tensor(source, offer)
        graph = source.graph(tensor)
        try:
            picture = self._offers.drawing.snapshot
            prediction = PagePrediction(graph, picture, retain_graph, fails, fails_at, frees, source.tracker)
        except LookupError as error:
            raise Refused(f"{OUT_OF_DATE}: {error}", LOOK_AGAIN) from None
        ran = self._run(source, tensor, _written(offer, retain_graph), retain_graph, keep_grad)
        return {**ran, **prediction.compared()}

    def _try_fix(self, fix: int, confirmed: int) -> dict[str, Any]:
        """Run the recorded cells again with a fix, in a fresh process, if `confirmed` is the key of that question."""
        if self._trying is None or self._tracked().tracker is None:
            raise Refused("A fix is tried by running recorded cells again, and none are recorded here.")
        try:
            asks, said = self._clicked.answer(self._trying, self._offers.drawing.findings, fix, confirmed)
        except LookupError:
            raise Refused(f"{OUT_OF_DATE}: that fix is gone.", LOOK_AGAIN) from None
        except CannotTry as why:
            raise Refused(str(why)) from None
        if asks is not None:
            return {"asks": asks}
        self._refresh()
        return {"said": _message(said)}

    def _rebuild(self, root: int) -> dict[str, Any]:
        """Run the cells again that made this root's graph; stop at the first error."""
        offer = self._offer(root)
        tracker = self._tracked().tracker
        if self._rerun is None or tracker is None:
            raise Refused("Rebuild needs IPython: no cells are recorded here.", "Run your code again.")
        runs = [tracker.runs.get(run) for run in offer.runs or ()]
        if not runs or None in runs:
            raise Refused("Which cells made this graph is not known.", "Run your cells again.")
        path = offer.ref.path or "a tensor"
        cells: list[int | None] = []
        error = None
        for run in _newest_of_each_cell([run for run in runs if run is not None]):
            cells.append(run.cell)
            problem = self._rerun(run)
            if problem is not None:
                error = f"{type(problem).__name__}: {problem}"
                break
        self._refresh()
        if error:
            said = _message(f"Rebuilding {path} stopped: {error}", alert=True)
        else:
            said = _message(f"{path} was built again by running {', '.join(f'In[{cell}]' for cell in cells)}.")
        return {"cells": cells, "error": error, "said": said}


def _written(offer: Offer, retain_graph: bool) -> str:
    """``loss.backward(retain_graph=True)``."""
    return f"{offer.ref.path or 'a tensor'}.backward({'retain_graph=True' if retain_graph else ''})"


def _message(text: str, next: str = "", *, alert: bool = False) -> dict[str, str]:
    """The page's message when a request is done, and whether it interrupts a screen reader."""
    return {"kind": "alert" if alert else "status", "text": text, "next": next}


def _said_after(what: str, raised: dict[str, Any] | None, call: BackwardCall | None, kept_grad: bool) -> dict[str, str]:
    """The message about the result of a backward; without a tracker the details of the call are unknown."""
    slots = count(call.freed_slots, "saved tensor") if call and call.freed_slots else ""
    if raised is not None:
        # The rest of torch's message is advice, which the finding gives better.
        first = re.match(r".{20,}?\.(?=\s)", raised["message"], re.DOTALL)
        text = f"{what} raised {raised['type']}: {first[0] if first else raised['message']}"
        return _message(text, f"It had freed {slots} before." if slots else "", alert=True)
    freed = f"{slots}, {bytes_text(call.freed_bytes)}" if call and slots else "nothing"
    ran = f"{what} ran and freed {freed}." if call else f"{what} ran."
    return _message(ran, ".grad is as it was." if kept_grad else "")


def _newest_of_each_cell(runs: list[CellRun]) -> list[CellRun]:
    """Cell runs in order; of a cell that ran twice only the last run."""
    newest = {run.cell_id or run.source: run for run in runs}
    return sorted(newest.values(), key=lambda run: run.run)


@outermost
def _run_backward(tensor: torch.Tensor, retain_graph: bool, retaining: list[torch.Tensor] | None) -> None:
    """`tensor.backward()`, with ones for a tensor that is not a scalar.

    `retaining`: put every `.grad` back afterwards, of leaves and of these tensors; None: do not.
    """
    import torch

    from graphwidget.notebook.live import leaves_below
    from graphwidget.torch_internals import grad_mode

    with grad_mode(True), ExitStack() as afterwards:
        gradient = None if tensor.numel() == 1 and not tensor.is_complex() else torch.ones_like(tensor)
        if retaining is not None:
            afterwards.enter_context(_grads_set_aside([*leaves_below(tensor), *retaining]))
        tensor.backward(gradient, retain_graph=retain_graph)  # type: ignore[no-untyped-call]


@contextmanager
def _grads_set_aside(tensors: list[torch.Tensor]) -> Iterator[None]:
    """Let a backward write to fresh `.grad`s, then put the old ones back: the same objects, untouched."""
    before = [(tensor, tensor.grad) for tensor in tensors]
    for tensor, _ in before:
        tensor.grad = None
    try:
        yield
    finally:
        for tensor, grad in before:
            tensor.grad = grad
