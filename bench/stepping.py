"""Measure the time from a key to the painted next step of a step-through, in headless Chromium without a GPU.

python bench/stepping.py [--nodes N ...] [--steps S] [--json]

A call on a graph of N nodes is stepped through with the key ".", once as the view groups it and once with every node
shown. The figures are milliseconds from the key to the frame after it was drawn: the median and the 95th percentile;
waiting for a frame is part of them, up to 17 ms. Goal: 50 ms for 95 % of the steps up to 1,000 nodes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from typing import Any

import torch
from page import Browser, open_view

from graphwidget.model import Drawing, Snapshot
from graphwidget.notebook.live import take_graphs
from graphwidget.render.wire import encode
from graphwidget.replies.steps import Stepping

GOAL_MS = 50.0
ANSWER = """told => {
  const { model } = window, send = model.send;
  const answers = { steps_ahead: told, more_steps: { first: 0, rows: told.rows } };
  model.send = (m) => {
    if (!(m.verb in answers)) return send(m);
    const reply = { id: m.id, ok: true, result: answers[m.verb] };
    queueMicrotask(() => window.reply(reply));
  };
}"""
STEP = """steps => new Promise(async done => {
  const root = document.querySelector('.graphwidget'), times = [];
  for (let i = 0; i < steps; i++) {
    const begun = performance.now();
    root.dispatchEvent(new KeyboardEvent('keydown', { key: '.', bubbles: true, cancelable: true }));
    await new Promise(painted => requestAnimationFrame(() => setTimeout(painted)));
    times.push(performance.now() - begun);
    await new Promise(rest => setTimeout(rest, 30));
  }
  done(times);
})"""


def graph_of(nodes: int) -> Snapshot:
    """Read a graph of about this many nodes, each with a saved tensor: a chain with links across."""
    torch.manual_seed(0)
    parts = [torch.ones(4, requires_grad=True)]
    for i in range((nodes - 2) // 2):
        parts.append(parts[-1].exp() * parts[max(0, len(parts) - 1 - i % 7)])
    loss = parts[-1].sum()
    return take_graphs([loss], None, {"loss": loss}, asked_from=sys._getframe())


def stepped(page: Any, steps: int, n: int) -> dict[str, float]:
    """Step through, and return the figures."""
    times = sorted(page.evaluate(STEP, steps))
    at = page.locator(".gw-play input[type=range]").input_value()
    assert int(at) > 0 and page.locator("[data-sign^='now ']").count(), "nothing was stepped through"
    return {"nodes": n, "median": statistics.median(times), "p95": times[int(0.95 * (len(times) - 1))]}


def measure(sizes: list[int], steps: int) -> dict[str, dict[str, float]]:
    """Return the figures for each number of nodes and each way to show them."""
    found = {}
    with Browser(size=(1280, 900)) as browser:
        for size in sizes:
            graph = graph_of(size)
            for name, shows in (("grouped", "auto"), ("every node", "all")):
                page = open_view(browser, encode(Drawing(graph)))
                page.evaluate(ANSWER, {**Stepping().ahead(graph, False), "wire": None})
                page.get_by_label("What to show").select_option(shows)
                page.wait_for_timeout(1500)
                page.locator("[role=treeitem]").first.focus()
                page.keyboard.press("s")
                page.locator(".gw-play input[type=range]").wait_for()
                found[f"{len(graph):,} nodes, {name}"] = stepped(page, min(steps, len(graph)), len(graph))
                page.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 1_000, 10_000])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.nodes, options.steps)
    if options.json:
        print(json.dumps(found))
        return
    print(f"python {' '.join(sys.argv)}    ms from the key to the painted step")
    for name, row in found.items():
        print(f"{name:>28}   median {row['median']:6.1f}   95th percentile {row['p95']:6.1f}")


if __name__ == "__main__":
    main()
