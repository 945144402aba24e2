"""Cells and a program that build small graphs, and ways to look at the widget that shows them."""

LOAD = "%load_ext graphwidget"
FORWARD = """\
import torch
torch.manual_seed(0)
net = torch.nn.Linear(5, 2)
loss = torch.nn.functional.cross_entropy(net(torch.randn(3, 5)), torch.tensor([0, 1, 1]))"""
SEED_002 = """\
import torch
mse = torch.nn.MSELoss()
x = torch.tensor([1., 0.], dtype=torch.float64)
t = torch.eye(2, dtype=torch.float64, requires_grad=True)
a = torch.ones(2, dtype=torch.float64, requires_grad=True)
y = t @ a"""
SEED_002_LOOP = """\
for it in range(2):
    x_out = t @ (x + y)
    loss = mse(x_out, x)
    loss.backward()"""
PROGRAM = """import torch
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
# %%
loss = net(torch.randn(5, 4)).pow(2).mean()
loss.backward(retain_graph=True)
# %%
loss.backward()
# %%
loss.backward()
"""


def widget_in(notebook, cell):
    """The widget in a cell's output, drawn."""
    widget = notebook.output(cell).locator(".graphwidget").first
    widget.wait_for()
    return widget


def nodes(widget, name=None, live=True):
    """Drawn nodes; `live` leaves out ghosts."""
    selector = f'[data-node="{name}"]' if name else "[data-node]"
    return widget.locator(selector + ('[data-ghost="false"]' if live else ""))


def clean(notebook):
    assert notebook.problems() == []
    assert notebook.log.offsite() == []
