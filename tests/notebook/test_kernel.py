"""The extension in a real kernel, spoken to as a page would: comm messages, also while a cell runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel
from read_wire import small, with_delta

TIMEOUT = 60

FORWARD = """
import torch
torch.set_num_threads(1)
t, a = torch.rand(3, 4, requires_grad=True), torch.rand(4, requires_grad=True)
y = t @ a
loss = (y * y).sum()
"""


class Page:
    """The page's side of one kernel: runs cells, sends requests, remembers what came."""

    def __init__(self, client) -> None:
        self.client = client
        self.messages: list[dict] = []
        self.comm = ""
        self.state: dict = {}

    def send_cell(self, code: str, **options: Any) -> str:
        return self.client.execute(code, **options)

    def cell(self, code: str, **options: Any) -> dict:
        """Run a cell; returns the reply's content."""
        request = self.send_cell(code, **options)
        reply = self.client.get_shell_msg(timeout=TIMEOUT)
        while reply["parent_header"].get("msg_id") != request:
            reply = self.client.get_shell_msg(timeout=TIMEOUT)
        self.pump(lambda m: m["msg_type"] == "status" and m["content"]["execution_state"] == "idle"
                  and m["parent_header"].get("msg_id") == request)  # fmt: skip
        return reply["content"]

    def pump(self, until) -> dict:
        """Receive until a message fits."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            self.messages.append(message)
            content = message["content"]
            if message["msg_type"] == "comm_open" and "wire" in content["data"].get("state", {}):
                self.comm, self.state = content["comm_id"], dict(content["data"]["state"])
            if message["msg_type"] == "comm_msg" and content["comm_id"] == self.comm:
                if content["data"].get("method") == "update":
                    self.state.update(content["data"]["state"])
            if until(message):
                return message
        raise AssertionError("nothing came")

    def ask(self, id: int, verb: str, **arguments) -> None:
        content = {"comm_id": self.comm, "data": {"method": "custom", "content": {"id": id, "verb": verb, **arguments}}}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", content))

    def ask_in_subshell(self, id: int, verb: str, **arguments: Any) -> None:
        """Send a request as JupyterLab does: to a subshell, which handles it in a thread of its own."""
        subshell = self.client.session.msg("create_subshell_request")
        self.client.control_channel.send(subshell)
        while True:
            reply = self.client.control_channel.get_msg(timeout=TIMEOUT)
            if reply["parent_header"]["msg_id"] == subshell["header"]["msg_id"]:
                break
        content = {"id": id, "verb": verb, **arguments}
        data = {"comm_id": self.comm, "data": {"method": "custom", "content": content}}
        message = self.client.session.msg("comm_msg", data)
        message["header"]["subshell_id"] = reply["content"]["subshell_id"]
        self.client.shell_channel.send(message)

    def answer(self, id: int) -> dict:
        """The next message about request `id`: an answer, or that it is queued."""

        def fits(message: dict) -> bool:
            data = message["content"].get("data", {})
            return message["msg_type"] == "comm_msg" and data.get("content", {}).get("id") == id

        return self.pump(fits)["content"]["data"]["content"]

    def picture(self) -> dict:
        """The state the page shows: the wire message with the delta applied to what these tests look at."""
        wire, delta = self.state["wire"], self.state["delta"]
        picture = with_delta(wire, delta) if delta else json.loads(wire)
        return {**picture, "slotState": small(picture["slotState"])}

    def root(self, path: str) -> dict:
        picture = self.picture()
        return next(root for root in picture["roots"] if picture["strings"][root["path"]] == path)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=TIMEOUT)
    try:
        page = Page(client)
        assert page.cell("%load_ext graphwidget")["status"] == "ok"
        assert page.cell(FORWARD + "%graphwidget")["status"] == "ok"
        yield page
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_the_view_comes_with_a_picture_and_with_text(page: Page) -> None:
    shown = next(m for m in page.messages if m["msg_type"] == "display_data")["content"]["data"]
    assert shown["application/vnd.jupyter.widget-view+json"]["model_id"] == page.comm
    assert "MvBackward0  y  In[2]:5" in shown["text/plain"]
    assert page.root("loss")["alive"] is True
    assert "1" not in page.picture()["slotState"]


def test_a_cell_that_calls_backward_updates_the_picture(page: Page) -> None:
    page.cell(FORWARD + "loss.backward()")
    picture = page.picture()
    assert picture["calls"][-1]["result"] == "ok"
    assert set(picture["slotState"]) == {"1"} and picture["held"] == 0
    assert picture["status"]["state"] == "idle" and page.state["busy"] == ""


def test_a_click_runs_backward_and_a_second_one_shows_the_error(page: Page) -> None:
    page.cell(FORWARD)
    page.ask(1, "backward", root=page.root("loss")["id"], retain_graph=False, keep_grad=False)
    first = page.answer(1)
    assert first["ok"] and first["result"]["raised"] is None and first["result"]["freedSlots"] > 0
    assert set(page.picture()["slotState"]) == {"1"}
    page.ask(2, "backward", root=page.root("loss")["id"], retain_graph=False, keep_grad=False)
    asks = page.answer(2)["result"]["asks"]
    assert asks["title"] == "loss.backward() would raise" and set(page.picture()["slotState"]) == {"1"}
    page.ask(3, "backward", root=page.root("loss")["id"], confirmed=asks["key"])
    second = page.answer(3)
    assert second["ok"] and "second time" in second["result"]["raised"]["message"]
    assert second["result"]["raised"]["uid"] in [call["failedUid"] for call in page.picture()["calls"]]
    assert page.cell("assert t.grad is not None; import sys; assert not hasattr(sys, 'last_value')")["status"] == "ok"


def test_a_click_during_a_cell_is_queued_and_runs_after_it(page: Page) -> None:
    page.cell(FORWARD)
    id = page.root("loss")["id"]
    request = page.send_cell("import time\ntime.sleep(1.5)\nduring = t.grad")
    page.pump(lambda m: m["msg_type"] == "execute_input" and m["parent_header"]["msg_id"] == request)
    page.ask_in_subshell(3, "backward", root=id, retain_graph=True, keep_grad=False)
    queued = page.answer(3)
    assert queued["queued"]["behind"].startswith("In[")
    done = page.answer(3)
    assert done["ok"] and done["result"]["raised"] is None
    assert page.cell("assert during is None and t.grad is not None")["status"] == "ok"


def test_a_long_cell_updates_the_view_while_it_runs(page: Page) -> None:
    page.cell(FORWARD)
    before = len(page.messages)
    # Long enough for a slow machine: a picture that costs 10 ms may be drawn every 2 s.
    page.cell(
        "import time\nend = time.time() + 4\nwhile time.time() < end:\n    (t @ a).sum().backward()\n    time.sleep(0.02)"
    )
    updates = [
        m for m in page.messages[before:]
        if m["msg_type"] == "comm_msg" and m["content"]["data"].get("method") == "update"
    ]  # fmt: skip
    assert 2 <= len(updates) <= 41
    assert page.state["busy"] == ""


def test_a_large_graph_is_read_after_the_answer_where_somebody_waits_for_it(page: Page) -> None:
    """Programs that run notebooks cannot be asked for input, and take nothing that comes after the answer."""
    page.cell("""
from dataclasses import replace
from graphwidget.notebook.session import tracker_of
tracker, ends = tracker_of(get_ipython()), []
before_this = tracker.policy
get_ipython().events.register("post_run_cell", lambda result: ends.append(tracker.history.next_event))
tracker.policy = replace(tracker.policy, read_at_once=3)
""")
    cell = "before = tracker.history.next_event\n" + FORWARD
    first = len(page.messages)

    def told() -> list[str]:
        states = [m["content"]["data"].get("state", {}) for m in page.messages[first:] if m["msg_type"] == "comm_msg"]
        return [state["busy"] for state in states if "busy" in state]

    page.cell(cell)
    while told()[-2:] != ["reading 5 nodes", ""]:
        page.pump(lambda message: True)
    assert page.root("loss")["alive"] is True
    # What ran last is still the cell above.
    assert page.cell("assert ends[-1] == before, (ends, before)")["status"] == "ok"
    page.cell(cell, allow_stdin=False)
    assert page.cell("assert ends[-1] == before + 1, (ends, before)")["status"] == "ok"
    page.cell("tracker.policy = before_this")
    page.cell(FORWARD)


def test_rebuild_runs_the_cells_again_that_made_the_graph(page: Page) -> None:
    page.cell(FORWARD)
    page.cell("loss.backward()")
    root = page.root("loss")
    assert root["cells"] is not None
    page.ask(4, "rebuild", root=root["id"])
    answer = page.answer(4)
    assert answer["ok"] and answer["result"]["cells"] == root["cells"] and answer["result"]["error"] is None
    assert page.root("loss")["alive"] and page.cell("loss.backward()")["status"] == "ok"


def test_rebuild_runs_cells_in_the_main_thread_wherever_the_click_arrives(page: Page) -> None:
    page.cell("import threading\n" + FORWARD + "\nran_in = threading.current_thread()")
    page.cell("loss.backward()\nran_in = None")
    page.ask_in_subshell(8, "rebuild", root=page.root("loss")["id"])
    answer = page.answer(8)
    assert answer["ok"], answer
    assert page.cell("assert ran_in is threading.main_thread(), ran_in")["status"] == "ok"
    picture = page.picture()
    assert -1 not in [picture["place"][i] for i, kind in enumerate(picture["kind"]) if kind == "0"]
    assert page.ask(9, "forecast", root=page.root("loss")["id"]) is None
    assert page.answer(9)["result"]["backward"]["ok"] is True, "the graph is a new one, with everything held"


def test_foreign_messages_get_an_error_and_change_nothing(page: Page) -> None:
    before = page.picture()
    page.ask(5, "evaluate", code="1 + 1")
    page.ask(6, "backward", root=10**9)
    assert "There is no action" in page.answer(5)["error"]["message"]
    assert "out of date" in page.answer(6)["error"]["message"]
    assert page.picture() == before


def test_unloading_leaves_the_picture_and_refuses_clicks(page: Page) -> None:
    page.cell("%unload_ext graphwidget")
    assert page.picture()["status"]["state"] == "off" and page.picture()["n"] > 0
    page.ask(7, "ping")
    assert "unloaded" in page.answer(7)["error"]["message"]
