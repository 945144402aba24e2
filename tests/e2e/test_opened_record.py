"""A record in JupyterLab: `%graphwidget open` shows it at once, with its past, and nothing can be run."""

import subprocess
import sys

import pytest
from harness import wait_for

pytestmark = pytest.mark.e2e

TRAIN = """import torch
torch.manual_seed(0)
t, a = torch.eye(2, requires_grad=True), torch.ones(2, requires_grad=True)
y = t @ a
for step in range(2):
    loss = (t @ (torch.ones(2) + y)).sum()
    loss.backward()
"""


def test_a_record_is_shown_as_if_it_were_live_and_runs_nothing(open_notebook, tmp_path, shots):
    (tmp_path / "train.py").write_text(TRAIN)
    record = tmp_path / "run.gwz"
    command = [sys.executable, "-m", "graphwidget", "run", "-o", str(record), "train.py"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 1
    notebook = open_notebook("%load_ext graphwidget", f"%graphwidget open {record}")
    notebook.run_all()
    widget = notebook.output(1).locator(".graphwidget").first
    widget.wait_for()
    widget.locator("[role=treeitem]").first.wait_for()
    assert widget.locator(".gw-pill").inner_text() == "record of train.py: read-only"
    assert "needs saved tensors that" in widget.inner_text()
    for button in widget.get_by_role("button", name="backward(").all():
        assert button.is_disabled() and "record of a run" in button.get_attribute("title")
    widget.screenshot(path=str(shots / "record.png"))
    widget.locator("[role=treeitem]").first.click()
    notebook.page.keyboard.press("[")
    wait_for(lambda: widget.get_attribute("data-past") == "true", "a picture of the past")
    widget.screenshot(path=str(shots / "record.png"))
