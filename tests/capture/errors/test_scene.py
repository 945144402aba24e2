"""The scene measured at an error. No user code runs, and nothing is kept alive."""

import gc
import weakref

import pytest
import torch
from cells import Notebook

from graphwidget.capture.errors.scene import of_error
from graphwidget.capture.lines.book import Book

SETUP = """
net = torch.nn.Linear(2, 1)
frozen = torch.nn.Linear(2, 1).requires_grad_(False)
empty = torch.nn.ReLU()
class Double(torch.autograd.Function):
    pass
w, x = torch.ones(3, requires_grad=True), torch.ones(3)
row = w[:2]
"""


def scene_of(*cells):
    notebook = Notebook()
    try:
        for cell in (SETUP, *cells):
            notebook.run(cell)
        assert not notebook.tracker.problems
        (scene,) = notebook.tracker.record().scenes.values()
        return scene
    finally:
        notebook.tracker.stop()


def test_what_the_names_of_a_line_are_is_measured():
    scene = scene_of("y = w.detach() + x\nprint(net, frozen, empty, Double, row, net.weight) or y.sum().backward()")
    kinds = {name: (one.kind, one.requires_grad) for name, one in scene.sights[0].values.items()}
    assert kinds["net"] == ("module", True) and kinds["frozen"] == ("module", False)
    assert kinds["empty"] == ("module", None) and kinds["Double"] == ("function", None)
    assert kinds["w"] == kinds["net.weight"] == ("tensor", True) and kinds["y"] == ("tensor", False)
    assert scene.value("w").leaf and not scene.value("row").leaf
    assert (scene.value("row").view_of, scene.value("w").view_of) == ("w", None)
    assert scene.value("x").shape == (3,) and scene.value("x").dtype == "float32"
    assert scene.grad_mode is True and scene.raised_in == "engine"


def test_elements_are_found_by_what_the_variable_in_the_brackets_holds():
    made = """
nets, at, key = torch.nn.ModuleList([net, frozen]), 1, "left"
pairs = {"left": [w, x], 3: x}
"""
    used = 'shown = (nets[at].weight, pairs[key][-1], pairs[key][at], pairs["left"][0], pairs[3], w[at])'
    scene = scene_of(made + used + "\n(w.detach() + x).sum().backward()")
    assert scene.value("nets[at].weight").requires_grad is False and scene.value("nets[at]").kind == "module"
    assert not scene.value("pairs[key][at]").requires_grad and scene.value("pairs[3]").leaf
    assert scene.value("pairs['left'][0]").requires_grad and scene.value("w[at]") is None


def test_the_frames_of_functions_are_distinguished_with_what_switched_grad_mode_off():
    text = """
def inner(x):
    loss = net(x).sum()
    loss.backward()
@torch.no_grad()
def outer(y):
    inner(y)
outer(torch.ones(1, 2))
"""
    scene = scene_of(text)
    assert scene.grad_mode is False
    assert [sight.place.line for sight in scene.sights] == [4, 7, 8]
    assert [sight.in_function for sight in scene.sights] == [True, True, False]
    assert [sight.decorators for sight in scene.sights] == [(), ("no_grad",), ()]
    assert scene.is_local("x") and scene.is_local("loss.grad") and not scene.is_local("net")
    assert scene.sights[0].values["x"].shape == (1, 2)
    assert scene.sights[-1].values["x"].shape == (3,)


@pytest.mark.parametrize(
    ("hook", "within"),
    [
        ("raise RuntimeError('no')", "python"),
        ("return x.sum().backward()", "call"),
    ],
)
def test_what_raised_within_a_backward_is_reported(hook, within):
    text = f"def hook(g):\n    {hook}\ny = w * 2\ny.register_hook(hook)\ny.sum().backward()\n"
    assert scene_of(text).raised_in == within


def test_no_code_of_the_users_runs():
    text = """
class Nosy(torch.nn.Linear):
    def __getattr__(self, name):
        raise AssertionError(name)
class Shy(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *_):
        raise AssertionError("torch_function")
class Holder:
    @property
    def part(self):
        raise AssertionError("part")
nosy, holder, shy = Nosy.__new__(Nosy), Holder(), torch.ones(1).as_subclass(Shy)
"""
    scene = scene_of(text, "used = lambda: (nosy.weight, holder.part, shy.data)\nx.sum().backward()")
    assert scene.value("holder.part") is None and scene.value("shy").kind == "tensor"


def test_nothing_is_kept_alive():
    notebook = Notebook()
    notebook.run(SETUP)
    notebook.run("def f():\n    mine = torch.ones(5)\n    keep.append(weak(mine))\n    mine.sum().backward()")
    notebook.namespace.update(keep=(kept := []), weak=weakref.ref)
    notebook.run("f()")
    assert notebook.errors and notebook.tracker.record().scenes
    notebook.errors.clear()
    gc.collect()
    assert kept[0]() is None
    notebook.tracker.stop()


def test_an_error_that_no_call_raised_is_measured_from_its_traceback():
    notebook = Notebook()
    source = "def f(t):\n    t.zero_()\nf(torch.ones(2, requires_grad=True)[0])"
    notebook.tracker.begin_cell(1, source, filename="<own>")
    try:
        exec(compile(source, "<own>", "exec"), notebook.namespace)
    except RuntimeError as error:
        notebook.tracker.end_cell(error)
    scene = notebook.tracker.record().runs[0].scene
    notebook.tracker.stop()
    assert scene.grad_mode is None and scene.value("t").view_of == ""


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda w: (w * 2).view(1, 3).backward(), (1, 3)),
        (lambda w: torch.autograd.grad([w.sum(), (w * 2).view(3, 1)], w), (3, 1)),
        (lambda w: torch.autograd.grad([w * 2, w * 3], w), None),  # which one is not known
        (lambda w: w.detach().sum().backward(), None),
    ],
)
def test_the_root_of_several_values_is_measured_where_no_variable_has_it(call, shape):
    with pytest.raises(RuntimeError) as raised:
        call(torch.ones(3, requires_grad=True))
    refused = of_error(raised.value, Book(), ()).refused
    assert (refused and refused.shape) == shape
