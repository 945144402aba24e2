"""A training loop of 1,000 iterations in one cell, with the view open in a real JupyterLab.

python bench/loop.py [--iterations N] [--width W] [--json]

GPT-2's tree of modules at a small width. Turns with the tracker off and on in the same kernel; prints the median step
of each in CPU time (also of the first and last fifth of the long loop: does a step get slower?), messages sent by the
kernel and received by the page while the loop ran, and how much the kernel's memory grew between iterations N/5 and N.
Goals: at most 3 % slower, no message dropped, growth at most 4 MB beyond that without tracking.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

import nbformat
from harness import Browser, JupyterPage, JupyterServer, wait_for
from models import GPT2

GOAL_OVERHEAD, GOAL_GROWTH_MB = 0.03, 4.0
SETUP = """\
torch.set_num_threads(1)
import gc, statistics, time
from graphwidget.notebook.widget import AutogradView
sent = []
_send = AutogradView._send
def counted(self, msg, buffers=None):
    if msg.get("method") == "update": sent.append(msg["state"].get("delta") != "")
    return _send(self, msg, buffers)
AutogradView._send = counted
def rss():
    with open("/proc/self/statm") as f: return int(f.read().split()[1]) * 4096 / 1e6
model = GPT2(width={width}, heads=4)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
tokens = torch.randint(32, (8, 17))
del logits, loss
optimizer.step()"""
LOOP = """\
times, memory = [], {{}}
for i in range({iterations}):
    began = time.process_time()
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 32), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    times.append(time.process_time() - began)
    if (i + 1) % ({iterations} // 5) == 0: memory[i + 1] = rss()"""
LISTEN = """() => {
  window.received = 0;
  window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.iopubMessage.connect((_, message) => {
    if (message.header.msg_type === 'comm_msg' && message.content.data?.method === 'update'
      && 'delta' in (message.content.data.state ?? {}) | 'wire' in (message.content.data.state ?? {})) window.received++;
  });
}"""


def run(notebook: JupyterPage, cell: int, source: str, wait_s: float) -> None:
    notebook.set_cell(cell, source)
    notebook.page.evaluate("k => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = k; }", cell)
    notebook.page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-cell'); }")
    state = "k => window.jupyterapp.shell.currentWidget.content.widgets[k].model.executionState"
    wait_for(lambda: notebook.page.evaluate(state, cell) == "running", 30, "the cell running")
    wait_for(lambda: notebook.page.evaluate(state, cell) != "running", wait_s, "the end of the loop", every_s=0.5)
    notebook.wait_idle()


def one_loop(notebook: JupyterPage, iterations: int) -> dict[str, Any]:
    notebook.kernel.exec("sent.clear(); gc.collect()")
    notebook.page.evaluate("() => { window.received = 0; }")
    run(notebook, 5, LOOP.format(iterations=iterations), 600)
    step, memory, sent = notebook.kernel.eval("[statistics.median(times), list(memory.values()), len(sent)]")
    fifth = f"[statistics.median(part) * 1e3 for part in (times[:{iterations // 5}], times[-{iterations // 5}:])]"
    received = "() => window.received"
    wait_for(lambda: notebook.page.evaluate(received) >= sent, 10, "the last message")
    return {
        "step_ms": step * 1e3,
        "drift_ms": notebook.kernel.eval(fifth),
        "growth_mb": memory[-1] - memory[0],
        "memory_mb": memory,
        "sent": sent,
        "received": notebook.page.evaluate(received),
        "seconds": notebook.kernel.eval("sum(times)"),
    }


def measure(iterations: int, width: int) -> dict[str, Any]:
    path = Path(__file__).resolve().parent / "loop.ipynb"
    cells = ("%load_ext graphwidget", GPT2, SETUP.format(width=width), "%graphwidget", "%graphwidget off", "pass")
    file = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    file.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(file, path)
    try:
        with JupyterServer([path]) as server, Browser(size=(1280, 1400)) as browser:
            notebook = JupyterPage(browser, server, path.name)
            for cell in range(4):
                notebook.run_cell(cell)
            notebook.page.locator(".graphwidget").first.wait_for()
            notebook.page.evaluate(LISTEN)
            found: dict[str, Any] = {"iterations": iterations, "on": [], "off": []}
            run(notebook, 5, LOOP.format(iterations=50), 120)  # warm up
            for turn in range(4):
                how = ("off", "on", "on", "off")[turn]
                notebook.set_cell(4, f"%graphwidget {how}")
                notebook.run_cell(4)
                # A whole loop once, tracked; for the ratio shorter ones do.
                found[how].append(one_loop(notebook, iterations if turn == 1 else max(100, iterations // 4)))
            found["problems"] = notebook.log.problems()
            found["serial"] = notebook.page.locator(".graphwidget").first.get_attribute("data-serial")
            return found
    finally:
        path.unlink()


def summary(found: dict[str, Any]) -> dict[str, Any]:
    long = found["on"][0]
    off, on = (min(turn["step_ms"] for turn in found[how]) for how in ("off", "on"))
    return {
        "off_ms": off,
        "on_ms": on,
        "overhead": on / off - 1,
        "drift_ms": long["drift_ms"],
        "memory_mb": long["memory_mb"],
        "sent": long["sent"],
        "dropped": long["sent"] - long["received"],
        "per_second": long["sent"] / long["seconds"],
        "growth_mb": long["growth_mb"],
        "growth_off_mb": found["off"][0]["growth_mb"],
        "problems": len(found["problems"]),
    }


def held(row: dict[str, Any]) -> bool:
    growth = row["growth_mb"] - max(0.0, row["growth_off_mb"])
    calm = row["dropped"] == 0 and row["problems"] == 0
    return bool(row["overhead"] <= GOAL_OVERHEAD and growth <= GOAL_GROWTH_MB and calm)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    row = summary(measure(options.iterations, options.width))
    if options.json:
        print(json.dumps(row))
        return not held(row)
    print(f"python {' '.join(sys.argv)}")
    print(f"step {row['off_ms']:.2f} ms, tracked with the view open {row['on_ms']:.2f} ms: {row['overhead']:+.1%}")
    print("step in the first and last fifth of the long loop: {:.2f} and {:.2f} ms".format(*row["drift_ms"]))
    print(f"{row['sent']} messages ({row['per_second']:.1f} a second), {row['dropped']} dropped")
    print(f"memory after the first fifth: {row['growth_mb']:+.1f} MB, untracked {row['growth_off_mb']:+.1f} MB", end="")
    print(" (kernel, MB:", *(f"{mb:.0f}" for mb in row["memory_mb"]), end=")\n")
    print(f"goals {GOAL_OVERHEAD:.0%}, 0 dropped, {GOAL_GROWTH_MB:g} MB: {'met' if held(row) else 'missed'}")
    return not held(row)


if __name__ == "__main__":
    sys.exit(main())
