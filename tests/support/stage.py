"""A page that asks, without a widget: cells run as the extension runs them, and each request is answered at once."""

from __future__ import annotations

from cells import Notebook

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.model import CellRun
from graphwidget.notebook.requests.actions import Actions
from graphwidget.notebook.requests.offers import Offers
from graphwidget.notebook.requests.turns import Turns
from graphwidget.notebook.sources import TrackerSource

FORWARD = """import torch
w = torch.ones(3, requires_grad=True)
loss = (w * torch.arange(3.)).exp().sum()
"""


class Stage:
    """A namespace that is tracked, and a page that asks."""

    def __init__(self) -> None:
        self.notebook = Notebook(diagnose=diagnose)
        self.names, self.tracker = self.notebook.namespace, self.notebook.tracker
        self.source = TrackerSource(self.tracker, lambda: self.names)
        self.turns, self.offers = Turns(), Offers()
        self.replies: list[dict] = []
        self.rerun: list[CellRun] = []
        self.actions = Actions(self.offers, self.turns, self.replies.append, self.refresh, rerun=self._run_again)
        self.actions.source = self.source

    def refresh(self) -> None:
        self.offers.update(self.source.drawing())

    def _run_again(self, run: CellRun) -> None:
        self.rerun.append(run)

    def cell(self, source: str) -> None:
        """Run a cell as the extension would."""
        assert self.notebook.run(source) is None
        self.refresh()

    def ask(self, verb: str, **arguments) -> dict:
        self.actions.handle({"id": len(self.replies) + 1, "verb": verb, **arguments})
        return self.replies[-1]

    def result(self, verb: str, **arguments) -> dict:
        reply = self.ask(verb, **arguments)
        assert reply["ok"], reply
        return reply["result"]

    def run_anyway(self, path: str, **arguments) -> dict:
        """Press the button of a call that would raise, and say yes."""
        asks = self.result("backward", root=self.root(path), **arguments)["asks"]
        return self.result("backward", root=self.root(path), confirmed=asks["key"], **arguments)

    def refusal(self, verb: str, **arguments) -> str:
        reply = self.ask(verb, **arguments)
        assert reply["ok"] is False
        return reply["error"]["message"]

    def root(self, path: str) -> int:
        return next(offer.id for offer in self.offers.current.values() if path in offer.ref.paths)

    def states(self) -> set[str]:
        words = {saved.state.word for node in self.tracker.snapshot().nodes for saved in node.saved}
        return words - {"unsaved"}
