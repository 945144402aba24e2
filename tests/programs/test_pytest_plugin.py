"""The pytest plugin, in runs of pytest of their own: the section under a failing test, and the fixture."""

import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

NAME = "graphwidget.programs.pytest_plugin"
NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.state = nn.GRUCell(2, 3), None

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state


def fit(steps=2, kept=None):
    net = Net()
    for _ in range(steps):
        if kept is not None:
            net.state = None
        loss = net(torch.ones(4, 2)).square().mean()
        loss.backward()
        if kept is not None:
            kept.append(loss)
"""


@pytest.fixture
def run(pytester):
    """Runs pytest on a test file that tests `net.py`; the plugin is loaded as it is where graphwidget is installed."""
    installed = any(one.value == NAME for one in entry_points(group="pytest11"))
    pytester.makepyfile(net=NET.strip())

    def run(test, *arguments):
        pytester.makepyfile(test_it=test)
        plugins = () if installed else ("-p", NAME)
        return pytester.runpytest_subprocess(*plugins, "-p", "no:cacheprovider", *arguments)

    return run


def section(result):
    lines = result.outlines
    at = next((i for i, line in enumerate(lines) if " autograd " in line and line.startswith("---")), None)
    return "\n".join(lines[at:]) if at is not None else ""


def test_it_is_an_entry_point():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'[project.entry-points.pytest11]\ngraphwidget = "{NAME}"\n' in text


def test_loading_it_imports_neither_torch_nor_ipython(run):
    test = "import sys\n\ndef test_it():\n    assert not {'torch', 'IPython', 'numpy'} & set(sys.modules)\n"
    run(test).assert_outcomes(passed=1)


def test_a_test_whose_backward_raised_has_a_section(run):
    result = run("from net import fit\n\ndef test_it():\n    fit()\n", "--graphwidget")
    result.assert_outcomes(failed=1)
    assert "✕ ② needs saved tensors that ① freed." in section(result)
    assert "`net.state` was built in net.py:11 in " in " ".join(section(result).split())
    assert "+ " in section(result) and "net.state.detach()" in section(result)


def test_without_the_flag_there_is_none(run):
    result = run("from net import fit\n\ndef test_it():\n    fit()\n")
    result.assert_outcomes(failed=1)
    assert section(result) == "" and "✕" not in result.stdout.str()


def test_a_failure_that_has_nothing_to_do_with_the_graph_has_none(run):
    result = run("from net import fit\n\ndef test_it():\n    fit(1)\n    assert 1 == 2\n", "--graphwidget")
    result.assert_outcomes(failed=1)
    assert section(result) == ""


def test_a_test_that_passes_is_left_alone(run):
    result = run("from net import fit\n\ndef test_it():\n    fit(1)\n", "--graphwidget", "-rA")
    result.assert_outcomes(passed=1)
    assert section(result) == ""


def test_each_test_is_told_of_what_it_did_itself(run):
    test = """
    import unittest
    import pytest
    from net import fit

    @pytest.fixture
    def broken():
        fit()

    class TestCase(unittest.TestCase):
        def test_in_a_class(self):
            fit()

    @pytest.mark.parametrize("steps", [1, 2])
    def test_with(steps):
        fit(steps)

    def test_setup(broken):
        pass
    """
    result = run(test, "--graphwidget")
    result.assert_outcomes(failed=2, passed=1, errors=1)
    said = re.findall("✕ (.) needs saved tensors that (.) freed.", result.stdout.str())
    assert sorted(said) == [("②", "①"), ("⑤", "④"), ("⑦", "⑥")]


SHARED = """
import pytest
import torch
from torch import nn
from net import Net

class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        return self.a(x) + self.b(x).detach()

@pytest.fixture(scope="module")
def net():
    return Net()

def test_cut(net):
    model = Two()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(3, 2)).sum().backward()
        optimizer.step()
    FAILS

@pytest.mark.parametrize("n", [1, 2])
def test_step(net, n):
    net(torch.ones(4, 2)).sum().backward()
"""


def test_what_an_earlier_test_left_in_a_fixture_is_explained_and_nothing_else_of_it(run):
    result = run(SHARED.replace("FAILS", ""), "--graphwidget")
    result.assert_outcomes(passed=2, failed=1)
    said = " ".join(section(result).split("test summary")[0].split())
    assert "✕ ⑤ needs saved tensors that ④ freed." in said and "no gradient in any step" not in said
    assert "`net.state` was built in net.py:11 in Net.forward" in said
    assert "self.state = self.state.detach()` before net.py:11" in said


def test_a_silence_is_told_in_its_own_test(run):
    result = run(SHARED.replace("FAILS", "assert not optimizer"), "--graphwidget", "-k", "cut")
    result.assert_outcomes(failed=1, deselected=2)
    assert "! `model.b.weight` and `model.b.bias` have had no gradient in any step" in " ".join(section(result).split())


def test_the_asserts_of_a_test_are_rewritten_and_its_lines_are_known(run):
    test = """
    import torch

    def test_it():
        w = torch.ones(3, requires_grad=True)
        assert w.requires_grad, "it has to"
        kept = w.exp()
        kept.sum().backward()
        assert kept.sum().backward() is None
    """
    result = run(test, "--graphwidget")
    assert "`kept` was built in test_it.py:6" in " ".join(section(result).split())
    assert "test_it:kept" in section(result) and "@py_" not in section(result).split("test summary")[0]


def test_it_works_in_workers(run):
    result = run("from net import fit\n\ndef test_it():\n    fit()\n", "--graphwidget", "-n", "1")
    result.assert_outcomes(failed=1)
    assert "✕ ② needs saved tensors that ① freed." in section(result)


GROWS = """
from net import fit

losses = []

def test_it(autograd):
    fit(5, losses)
    assert len(autograd.calls) == 5
    autograd.assert_no_growth()
"""


@pytest.mark.parametrize("flags", [(), ("--graphwidget",)])
def test_the_fixture_names_what_keeps_graphs_and_the_line(run, flags):
    result = run(GROWS, *flags)
    result.assert_outcomes(failed=1)
    said = " ".join(result.stdout.str().split())
    assert "AssertionError: graphs of several iterations pile up" in said
    assert "pile up in `losses`" in said and "write `kept.append(loss.detach())` (net.py:23 in" in said


def test_the_fixture_passes_what_keeps_nothing(run):
    test = """
    from net import fit

    def test_it(autograd):
        fit(1)
        assert len(autograd.calls) == 1 and autograd.findings() == ()
        autograd.assert_no_growth()
    """
    run(test).assert_outcomes(passed=1)


def test_track_in_a_test_has_its_own_record(run):
    test = """
    import graphwidget as gw
    from net import fit

    def test_it():
        with gw.track() as tracker:
            fit(1)
        assert len(tracker.calls) == 1
        fit()
    """
    result = run(test, "--graphwidget")
    result.assert_outcomes(failed=1)
    assert "needs saved tensors that" in section(result)
