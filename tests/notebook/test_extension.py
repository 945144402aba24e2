from __future__ import annotations

import gc
import json
import sys
import weakref
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from graphwidget.notebook import extension as ext
from graphwidget.notebook import session

LOAD = "%load_ext graphwidget"
FORWARD = "import torch; w = torch.ones(3, requires_grad=True)\nloss = w.exp().sum()"


def run(shell: Any, *cells: str, **more: Any) -> Any:
    """Run cells as a notebook does; returns the last result."""
    result = None
    for cell in cells:
        result = shell.run_cell(cell, store_history=True, **more)
    return result


def tracker(shell: Any) -> Any:
    return session.tracker_of(shell)


def cells_of_nodes(shell: Any) -> dict[str, tuple[int | None, int | None]]:
    return {n.name: (n.place.cell, n.place.line) for n in tracker(shell).snapshot().nodes if n.place}


def callbacks(shell: Any) -> dict[str, list]:
    return {event: list(found) for event, found in shell.events.callbacks.items()}


def test_cells_become_events_with_numbers_and_places(shell: Any) -> None:
    run(shell, LOAD, FORWARD, "loss.backward()")
    assert [(e.kind, e.cell) for e in tracker(shell).events] == [("cell", 1), ("cell", 2), ("call", 3), ("cell", 3)]
    assert cells_of_nodes(shell)["ExpBackward0"] == (2, 2)
    assert tracker(shell).calls[0].place.cell == 3 and tracker(shell).calls[0].forecast == "ok"


def test_the_rest_of_the_cell_that_loads_the_extension_is_tracked(shell: Any) -> None:
    run(shell, f"import torch\n{LOAD}\n{FORWARD}\nloss.backward()")
    assert cells_of_nodes(shell)["ExpBackward0"] == (1, 4)
    assert [e.kind for e in tracker(shell).events] == ["call", "cell"]
    assert {place.run for place in tracker(shell).snapshot().places} == {0}, "so that Rebuild knows the cell"


def test_code_of_cells_that_ran_before_the_load_has_places(shell: Any) -> None:
    run(shell, "import torch\ndef f(w):\n    return w.exp()", LOAD, "loss = f(torch.ones(2, requires_grad=True)).sum()")
    assert cells_of_nodes(shell)["ExpBackward0"] == (1, 3)


def test_loading_twice_changes_nothing(shell: Any) -> None:
    run(shell, LOAD)
    first, before = tracker(shell), callbacks(shell)
    run(shell, LOAD)
    ext.load_ipython_extension(shell)
    assert tracker(shell) is first and callbacks(shell) == before


def test_unloading_restores_everything(shell: Any) -> None:
    before = callbacks(shell), set(shell.magics_manager.magics["line"]), sys.gettrace()
    engine = torch.autograd._engine_run_backward, torch.autograd.graph._engine_run_backward
    run(shell, LOAD, FORWARD, "loss.backward()", "%unload_ext graphwidget")
    assert (callbacks(shell), set(shell.magics_manager.magics["line"]), sys.gettrace()) == before
    assert (torch.autograd._engine_run_backward, torch.autograd.graph._engine_run_backward) == engine
    assert "%graphwidget" not in shell.strdispatchers["complete_command"].strs
    assert session.current_tracker() is None


def test_reloading_gives_one_fresh_tracker(shell: Any) -> None:
    run(shell, LOAD)
    first, before = tracker(shell), callbacks(shell)
    run(shell, "%reload_ext graphwidget", FORWARD, "loss.backward()")
    assert tracker(shell) is not first and not first.running
    assert [len(found) for found in callbacks(shell).values()] == [len(found) for found in before.values()]
    assert len(tracker(shell).calls) == 1


def test_unloading_without_loading_is_fine(shell: Any) -> None:
    ext.unload_ipython_extension(shell)
    assert session.current() is None


@pytest.mark.filterwarnings("ignore:To exit")
@pytest.mark.parametrize(
    "source",
    [
        "1 / 0",
        "def (",
        "    x = 1\n  y = 2",
        "raise KeyboardInterrupt",
        "import sys; sys.exit(3)",
        "%no_such_magic",
        "raise BaseException('odd')",
    ],
)
def test_a_cell_that_fails_is_an_event_and_the_next_one_goes_on(shell: Any, source: str) -> None:
    run(shell, LOAD, source)
    event = tracker(shell).events[-1]
    assert (event.cell, event.ok) == (2, False)
    run(shell, FORWARD)
    assert cells_of_nodes(shell)["ExpBackward0"] == (3, 2)
    assert tracker(shell).busy is None and session.current().turns.busy is None
    assert not tracker(shell).problems


def test_empty_and_silent_cells_and_missing_results_are_no_events(shell: Any) -> None:
    run(shell, LOAD)
    before = len(tracker(shell).events)
    run(shell, "", "   \n")
    shell.run_cell("x = 1", silent=True)
    shell.events.trigger("post_run_cell", None)
    assert len(tracker(shell).events) == before and session.current().turns.busy is None


def test_an_end_without_a_result_ends_the_running_cell(shell: Any) -> None:
    run(shell, LOAD)
    shell.user_ns["end"] = lambda: shell.events.trigger("post_run_cell", None)
    run(shell, "end()", FORWARD)
    assert tracker(shell).busy is None and session.current().turns.busy is None
    assert cells_of_nodes(shell)["ExpBackward0"] == (3, 2)


@pytest.mark.parametrize("magic", ["%%time", "%%capture out"])
def test_lines_under_a_cell_magic_are_lines_of_the_cell(shell: Any, magic: str) -> None:
    run(shell, LOAD, f"{magic}\n{FORWARD}")
    assert cells_of_nodes(shell)["ExpBackward0"] == (2, 3)
    assert session.current().turns.busy is None


def test_a_cell_run_by_a_cell_ends_before_it(shell: Any) -> None:
    run(shell, LOAD, "ip = get_ipython()")
    run(shell, "import torch\nip.run_cell('a = torch.ones(2, requires_grad=True).exp()')\nb = a.sum()")
    assert cells_of_nodes(shell)["SumBackward0"] == (3, 3)
    assert session.current().turns.busy is None and tracker(shell).busy is None


def test_an_async_cell_is_tracked(shell: Any) -> None:
    run(shell, LOAD, f"import asyncio\nawait asyncio.sleep(0)\n{FORWARD}")
    assert cells_of_nodes(shell)["ExpBackward0"] == (2, 4)


def test_our_callbacks_leave_the_users_last_error_alone(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run(shell, LOAD, "1 / 0")
    kept = sys.last_value
    assert isinstance(kept, ZeroDivisionError)
    monkeypatch.setattr(type(tracker(shell)), "begin_cell", lambda *a, **k: 1 / len(""))
    monkeypatch.setattr(type(tracker(shell)), "end_cell", lambda *a, **k: int("x"))
    assert run(shell, "x = 1").success
    assert sys.last_value is kept and shell.user_ns["x"] == 1
    assert session.current().turns.busy is None


def test_an_interrupt_while_a_cell_waits_for_a_click_leaves_no_cell_open(
    shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(shell, LOAD)
    begins = type(session.current().turns).cell_begins

    def interrupted(self: Any, *args: Any) -> None:
        begins(self, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(session.current().turns), "cell_begins", interrupted)
    assert run(shell, "x = 1").success
    assert session.current().turns.busy is None and tracker(shell).busy is None


def test_a_failure_of_ours_is_shown_in_the_widget(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run(shell, LOAD, "%graphwidget")
    monkeypatch.setattr(type(tracker(shell)), "begin_cell", lambda *a, **k: 1 / len(""))
    run(shell, "x = 1")
    session.current().view.refresh()
    assert "ZeroDivisionError" in session.current().view.wire


def test_switching_off_records_nothing_and_on_goes_on(shell: Any) -> None:
    run(shell, LOAD, FORWARD, "%graphwidget", "%graphwidget off")
    view = session.current().view
    assert session.current_tracker() is None and '"state":"off"' in view.wire + view.delta
    run(shell, "loss.backward(retain_graph=True)")
    assert len(tracker(shell).calls) == 0
    session.current().switch_on()
    run(shell, "loss.backward()")
    assert [call.place.cell for call in tracker(shell).calls] == [6]
    assert '"state":"off"' not in view.delta


def test_reset_forgets_what_happened_and_keeps_what_is_alive(shell: Any) -> None:
    run(shell, LOAD, FORWARD, "loss.backward(retain_graph=True)", "%graphwidget")
    view = session.current().view
    run(shell, "%graphwidget reset")
    assert not tracker(shell).calls and tracker(shell).running
    run(shell, "loss.backward()")
    assert len(tracker(shell).calls) == 1
    assert session.current().view is view and '"result":"ok"' in view.wire + view.delta


def test_rerun_runs_a_cell_under_its_own_number(shell: Any) -> None:
    run(shell, LOAD, FORWARD, "x = 1", cell_id="abc")
    recorded = tracker(shell).runs[1]
    count = shell.execution_count
    assert session.current().rerun(recorded) is None
    assert shell.execution_count == count
    assert cells_of_nodes(shell)["ExpBackward0"] == (2, 2)
    error = session.current().rerun(type(recorded)(99, 2, "1 / 0"))
    assert isinstance(error, ZeroDivisionError)


def test_tracking_keeps_no_tensor_alive(shell: Any) -> None:
    run(shell, LOAD, FORWARD, "%graphwidget", "loss.backward()")
    loss = weakref.ref(shell.user_ns["loss"])
    run(shell, "del loss")
    gc.collect()
    assert loss() is None


def test_two_shells_have_two_trackers(shell: Any) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    other = InteractiveShell(config=shell.config)
    run(shell, LOAD)
    ext.load_ipython_extension(other)
    assert tracker(shell) is not tracker(other)
    ext.unload_ipython_extension(other)
    assert tracker(shell).running


class Loop:
    def call_later(self, seconds: float, function: Callable[[], None]) -> None: ...


def kernel(allow_stdin: bool | None, **attributes: Any) -> SimpleNamespace:
    content = {} if allow_stdin is None else {"allow_stdin": allow_stdin}
    return SimpleNamespace(
        **{"io_loop": Loop(), "eventloop": None, "get_parent": lambda: {"content": content}} | attributes
    )


@pytest.mark.parametrize(
    ("kernel", "waits"),
    [
        (kernel(True), True),
        (kernel(False), False),  # nbclient, Voila
        (kernel(None), False),  # a click runs the cell again
        (kernel(True, eventloop=lambda kernel: None), False),  # %gui qt
        (kernel(True, io_loop=None), False),
        (SimpleNamespace(io_loop=Loop()), False),  # a kernel that does not say what it was asked
        (None, False),  # a terminal
    ],
)
def test_only_where_somebody_waits_for_it_is_work_left_for_later(kernel: Any, waits: bool) -> None:
    assert (ext._when_idle(SimpleNamespace(kernel=kernel)) is not None) == waits


def test_a_carrier_that_the_earlier_call_did_not_reach_is_on_the_path_and_at_the_border(shell: Any) -> None:
    """The loss is of `out`; what goes on to the next iteration is `h`, another node on top of the same cell."""
    run(
        shell,
        LOAD,
        "import torch, graphwidget\nrnn, h = torch.nn.RNN(2, 3), torch.zeros(1, 1, 3)\nview = graphwidget.view()",
    )
    loop = "for step in range(2):\n    out, h = rnn(torch.ones(4, 1, 2), h)\n    loss = out[-1].sum()\n"
    run(shell, loop + "    loss.backward()")
    (finding,) = tracker(shell).findings()
    assert finding.path == ("loss", "out", "h", "TanhBackward0")
    message = json.loads(shell.user_ns["view"].wire)
    (border,) = message["boundary"]
    assert message["strings"][border[2]] == "h"
