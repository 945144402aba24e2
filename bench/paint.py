"""Measure the time from the end of a cell to the painted picture, in a real JupyterLab.

A cell builds a graph (that of a lecture: two losses on a shared trunk; then of about N nodes) and records the time at
its last line. The page records the time of the first frame after the picture of that graph was drawn. For comparison, the same run measures an empty widget: an anywidget
whose one trait changes at the end of the cell and that draws one line of text. The figures are medians.

    python bench/paint.py [--repeat R] [--nodes N ...] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import nbformat
from harness import Browser, JupyterPage, JupyterServer, wait_for

SETUP = """\
%load_ext graphwidget
import anywidget, time, traitlets, torch
class Empty(anywidget.AnyWidget):
    _esm = '''export default { render({ model, el }) {
      const draw = () => { el.textContent = `tick ${model.get("tick")}`; };
      model.on("change:tick", () => { draw();
        requestAnimationFrame(() => setTimeout(() => { window.emptyPainted = performance.timeOrigin + performance.now(); })); });
      draw(); } }'''
    tick = traitlets.Int(0).tag(sync=True)
empty = Empty()
torch.manual_seed(0)
def build(n):
    x = torch.ones(4, requires_grad=True)
    parts = [x]
    while n > 0:
        k = min(n, 12)
        a = parts[-1]
        for i in range(k): a = a * 1.5 if i % 3 else a + parts[max(0, len(parts) - 3)]
        parts.append(a); n -= k
    return parts[-1].sum()
trunk, head1, head2 = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1), torch.nn.Linear(8, 3)
batch, goal, labels = torch.randn(6, 4), torch.randn(6, 1), torch.randint(0, 3, (6,))"""
LECTURE = """\
z = torch.relu(trunk(batch))
loss1 = torch.nn.functional.mse_loss(head1(z), goal)
loss2 = torch.nn.functional.cross_entropy(head2(z), labels)"""
WATCH = """() => {
  const root = document.querySelector('.graphwidget');
  window.seenSerial = root.dataset.serial;
  new MutationObserver(() => {
    if (root.dataset.serial === window.seenSerial) return;
    window.seenSerial = root.dataset.serial;
    requestAnimationFrame(() => setTimeout(() => { window.painted = performance.timeOrigin + performance.now(); }));
  }).observe(root, { attributes: true, attributeFilter: ['data-serial'] });
}"""


def once(notebook: JupyterPage, cell: int, source: str, stamp: str) -> float:
    """Return the milliseconds from the cell's last line to the time that the page records."""
    notebook.set_cell(cell, source + "\ndone = time.time()")
    notebook.page.evaluate("() => { window.painted = window.emptyPainted = null; }")
    notebook.run_cell(cell)
    painted = wait_for(lambda: notebook.page.evaluate(f"() => window.{stamp}"), 120, "paint")
    return painted - notebook.kernel.eval("done") * 1000


def measure(runs: int, sizes: list[int]) -> dict[str, float]:
    """Return the median milliseconds for an empty widget, the graph of a lecture, and each number of nodes."""
    notebook_file = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(c) for c in (SETUP, "empty", "%graphwidget", "pass")]
    )
    notebook_file.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "paint.ipynb"
        nbformat.write(notebook_file, path)
        with JupyterServer([path]) as server, Browser(size=(1280, 1400)) as browser:
            notebook = JupyterPage.open(browser, server, path.name)
            for cell in range(3):
                notebook.run_cell(cell)
            notebook.page.locator(".graphwidget").first.wait_for()
            notebook.page.evaluate(WATCH)

            def middle(source: str, stamp: str) -> float:
                return statistics.median([once(notebook, 3, source, stamp) for _ in range(runs + 1)][1:])

            found = {"empty": middle("empty.tick += 1", "emptyPainted"), "lecture": middle(LECTURE, "painted")}
            for n in sizes:
                found[str(n)] = middle(f"loss = build({n})", "painted")
            assert not notebook.log.problems(), notebook.log.problems()
            return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--nodes", type=int, nargs="*", default=[100, 1_000, 10_000, 100_000])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.repeat, options.nodes)
    if options.json:
        print(json.dumps(found))
        return
    print(f"python {' '.join(sys.argv)}    medians, ms, from a cell's last line to the painted page")
    for name, ms in found.items():
        label = {"empty": "an empty widget", "lecture": "a lecture's graph"}.get(name) or f"{int(name):,} nodes"
        print(f"{label:>24} {ms:8.0f}   {ms - found['empty']:+8.0f} beyond the empty widget")


if __name__ == "__main__":
    main()
