"""The lines that modified tensors: on programs with a measured truth, and for every way to write."""

from __future__ import annotations

import json
import sys
import textwrap
import weakref
from pathlib import Path

import pytest
import torch
from cells import Notebook
from torch import nn

from graphwidget.capture.writes.statements import HARMLESS, statements

PROGRAMS = Path(__file__).resolve().parents[2] / "scenarios" / "programs"
WITH_WRITES = {
    PROGRAMS / theme.parent.name / f"{name}.py": truth["inplace"]
    for theme in sorted(PROGRAMS.glob("*/measured.json"))
    for name, truth in json.loads(theme.read_text()).items()
    if "inplace" in truth
}


class Runner(Notebook):
    """Runs indented source and returns the recorded writes."""

    def run(self, source: str, filename: str | None = None) -> BaseException | None:
        return super().run(textwrap.dedent(source).strip("\n"), filename)

    def seen(self) -> list[tuple[int, int, tuple[str, ...]]]:
        """Return (outer cell, outer line, paths) of every write."""
        return [(w.place.outer_cell, w.place.outer_line, w.paths) for w in self.tracker.writes]


@pytest.fixture
def notebook():
    made = Runner()
    yield made
    made.close()


# ---------------------------------------------------------------- measured truth


@pytest.mark.parametrize("program", WITH_WRITES, ids=lambda path: path.stem)
def test_the_line_and_the_name_that_were_measured_are_recorded(program, notebook):
    written = WITH_WRITES[program]
    for cell in program.read_text().split("# %%\n")[1:]:
        if notebook.run(cell) is not None:
            break
    cell, line = written["changed_at"]
    wanted = set(written["tensor"].split("|"))
    last = [w for w in notebook.tracker.writes if wanted & set(w.paths)][-1]
    assert [last.place.outer_cell, last.place.outer_line] == [cell, line]
    tensor = eval(next(iter(wanted)), notebook.namespace)
    key = tensor.untyped_storage()._cdata
    assert [w for w in notebook.tracker.writes if key in w.storages][-1] is last
    assert last.optimizer == ("step()" in written.get("by", ""))


def test_there_are_measured_programs():
    assert len(WITH_WRITES) >= 7


def test_a_line_that_writes_in_each_pass_has_each_write_with_its_pass_its_storage_and_its_node(notebook):
    notebook.run(
        """
        import torch
        w = torch.ones(3, requires_grad=True)
        buffers = [torch.zeros(3), torch.zeros(3)]
        """
    )
    notebook.run(
        """
        made = []
        for step in range(8):
            kept = buffers[step // 4]
            kept += 1
            h = w * 2
            h.mul_(3)
            made.append(h.grad_fn._sequence_nr())
        """
    )
    plain, graph = ([w for w in notebook.tracker.writes if w.by == by] for by in ("kept += 1", "h.mul_(3)"))
    assert [w.place.iteration for w in plain] == [w.place.iteration for w in graph] == list(range(8))
    keys = [one.untyped_storage()._cdata for one in notebook.namespace["buffers"]]
    assert [w.storages for w in plain] == [(key,) for key in keys for _ in range(4)]
    assert [w.place.line for w in plain] == [4] * 8 and all(w.made == () for w in plain)
    assert [w.made for w in graph] == [(number,) for number in notebook.namespace["made"]]
    assert [w.number for w in graph] == notebook.namespace["made"]


# ---------------------------------------------------------------- ways to write


@pytest.mark.parametrize(
    "line",
    [
        "t += 1",
        "t[0] = 5.",
        "t.add_(1)",
        "t[1:].mul_(2)",
        "torch.add(t, 1, out=t)",
        "box.t[0] = 1.",
        "box.t.zero_()",
        "with_call(t)",
        "t[0], b = 1., 2",
    ],
)
def test_each_way_to_write_names_its_line(notebook, line):
    notebook.run(
        """
        import torch, types
        t = torch.ones(3)
        box = types.SimpleNamespace(t=t)
        def with_call(t):
            pass
            t.copy_(torch.zeros(3))
        """
    )
    notebook.run(f"a = 1\n{line}\nc = t * 2")
    assert [(cell, at, paths[0]) for cell, at, paths in notebook.seen()] == [(2, 2, "t")]
    inner = notebook.tracker.writes[0].place
    assert (inner.cell, inner.line) == ((1, 6) if "with_call" in line else (2, 2))


def test_a_tensor_made_in_the_same_cell_and_in_a_function_is_seen(notebook):
    notebook.run(
        """
        import torch
        def step():
            x = torch.ones(2, requires_grad=True)
            y = x.exp()
            y += 1
            return y
        y = step()
        """
    )
    write = notebook.tracker.writes[0]
    assert (write.paths, write.by, write.place.line, write.place.outer_line) == (("y",), "y += 1", 5, 7)
    assert notebook.namespace["y"].tolist() == (torch.ones(2).exp() + 1).tolist(), "its locals were left alone"


def test_a_new_tensor_with_the_id_of_one_that_is_gone_is_seen(notebook):
    """Python gives the `id` of an object that is gone to a new one, by chance; here it is done on purpose."""
    notebook.run("import torch\nx = torch.ones(3)")
    watched = notebook.tracker.write_recorder.watched
    notebook.namespace["take_over"] = lambda new: watched.index.update({id(new): watched.paths.index("x")})
    notebook.run("del x\ny = torch.ones(2)\ntake_over(y)\ny += 1")
    assert notebook.seen() == [(2, 4, ("y",))]


@pytest.mark.parametrize(
    "inner, call, wrote",
    [
        ("t.mul_(2)", "halve(h)", ["t.mul_(2)"]),
        ("t.mul_(2)\n    t = t.add_(1)", "halve(h)", ["t.mul_(2)", "t = t.add_(1)"]),
        ("t.mul_(2)", "halve(h).add_(1)", ["t.mul_(2)", "halve(h).add_(1)"]),
        ("t.mul_(2)\n    raise ValueError", "halve(h)", ["t.mul_(2)"]),
    ],
)
def test_what_a_function_writes_is_not_written_again_by_the_line_that_called_it(notebook, inner, call, wrote):
    cell = f"""
import torch
h = torch.ones(2).exp()
def halve(t):
    {inner}
    return t
try:
    {call}
except ValueError:
    pass
"""
    notebook.run(cell)
    assert [write.by for write in notebook.tracker.writes] == wrote


def test_a_write_tells_which_nodes_it_made(notebook):
    notebook.run("import torch\nw = torch.ones(3, requires_grad=True)\ny = w * 2\nv = y[:2]\nc = torch.zeros(3)")
    notebook.run("y.exp_()\ny.mul_(2).sin_()\nv.add_(1)\nc += 1")
    exp, sin, _, plain = notebook.tracker.writes
    node = notebook.namespace["y"].grad_fn
    while node.name() != "SinBackward0":
        node = node.next_functions[0][0]
    mul = node.next_functions[0][0]
    assert sin.made == (node._sequence_nr(),)
    assert exp.made == (mul.next_functions[0][0]._sequence_nr(),)
    assert plain.made == ()


def test_lines_that_write_nothing_are_not_named(notebook):
    notebook.run("import torch\nt = torch.ones(2)\nn = 1\nd = {}\nl = []")
    notebook.run("n += 1\nd['a'] = t\nl += [t]\nu = t + 1\nv = t.clone()\nl.append(u)")
    assert notebook.seen() == []


def test_a_step_inside_library_code_names_the_line_that_called_it(notebook):
    module = type(sys)("trainer")
    exec(
        "def fit(net, opt):\n    for _ in range(3):\n        net(x).sum().backward()\n        opt.step()\n",
        vars(module),
    )
    module.x = torch.ones(1, 2)
    notebook.namespace.update(trainer=module, nn=nn, torch=torch)
    notebook.run("net = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=.1)")
    notebook.run("a = 1\ntrainer.fit(net, opt)")
    steps = [write for write in notebook.tracker.writes if write.optimizer]
    assert len(steps) == 3
    assert {seen[:2] for seen in notebook.seen()} == {(2, 2)}
    write = steps[-1]
    assert (write.by, set(write.paths), write.optimizer) == ("SGD.step()", {"net.weight", "net.bias"}, True)


def test_what_a_line_writes_between_calls_of_a_function_is_its_own(notebook):
    notebook.run(
        """
        import torch
        w = torch.randn(3, requires_grad=True)
        opt = torch.optim.LBFGS([w], max_iter=3)
        def closure():
            opt.zero_grad()
            loss = (w - 1).pow(2).sum()
            loss.backward()
            return loss
        """
    )
    notebook.run("a = 1\nopt.step(closure)")
    assert {(seen[:2], write.by) for seen, write in zip(notebook.seen(), notebook.tracker.writes, strict=True)} == {
        ((2, 2), "opt.step(closure)")
    }


def test_a_line_left_out_by_sampling_is_compared_again_once_something_changed(notebook):
    notebook.run(
        """
        import torch
        t, other = torch.ones(2), torch.ones(2)
        views = t[1:], other[1:]
        """
    )
    hidden = {"torch": torch}
    exec("def touch(i, t):\n    if i >= 100: torch.ops.aten.add_(t, 1)", hidden)
    notebook.namespace["touch"] = hidden["touch"]
    notebook.run("for i in range(130):\n    touch(i, t)\n    other += 1")
    found = [write for write in notebook.tracker.writes if write.paths[0] == "t"]
    assert {(write.place.outer_cell, write.place.outer_line) for write in found} == {(2, 2)}
    assert min(write.place.iteration for write in found) == 101  # the write of iteration 100 has no line
    assert len(found) == 29


def test_a_search_in_the_middle_of_a_line_loses_no_write(notebook):
    module = type(sys)("library")
    exec("def touch(t):\n    t.add_(1)\n    again()", vars(module))
    module.again = notebook.tracker.snapshot
    notebook.namespace.update(touch=module.touch)
    notebook.run("t = torch.ones(2)")
    notebook.run("a = 1\ntouch(t)")
    assert notebook.seen() == [(2, 2, ("t",))]


def test_writes_are_ordered_among_backward_calls(notebook):
    notebook.run("t, w = torch.ones(1), torch.ones(1, requires_grad=True)")
    notebook.run("t += 1")
    notebook.run("(w * 2).backward()\n(w * 3).backward()")
    notebook.run("t += 1")
    writes = [write for write in notebook.tracker.writes if write.by == "t += 1"]
    assert [(write.place.outer_cell, write.after_calls) for write in writes] == [(2, 0), (4, 2)]


# ---------------------------------------------------------------- the source


def test_which_lines_may_write_and_which_surely_do():
    found = statements(
        textwrap.dedent(
            """\
            %matplotlib inline
            x = 1
            y = x + 2
            y += 1
            for i in range(3):
                a = b
                f(
                    a,
                )
            class A:
                def m(self):
                    self.h.zero_()
            opt.step()
            !ls
            """
        )
    )
    assert {line: s.sure for line, s in found.items()} == {
        4: True, 5: False, 7: False, 8: False, 9: False, 12: True, 13: True,
    }  # fmt: skip
    assert found[12].chains[0] == ("self", "h", "zero_")
    assert found[13].optimizer
    assert statements("this is no python") == {}


# ---------------------------------------------------------------- harmless


def test_nothing_is_kept_alive_and_hooks_are_removed(notebook):
    notebook.run("import torch\nt = torch.ones(3)\nu = torch.ones(2)\nu += 1")
    gone = weakref.ref(notebook.namespace["t"])
    notebook.run("t += 1\ndel t, u")
    assert gone() is None
    hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
    assert len(hooks) == 1
    notebook.tracker.stop()
    assert len(hooks) == 0


def test_the_log_is_bounded_and_steps_share_their_names(notebook):
    notebook.namespace.update(nn=nn, torch=torch)
    notebook.run(
        "net = nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=.1)\nnet(torch.ones(1, 2)).sum().backward()"
    )
    notebook.run("for _ in range(1000):\n    opt.step()")
    log = notebook.tracker.writes
    assert len(log) == 512
    assert log[0].paths is log[-1].paths


def test_a_line_that_only_calls_something_is_compared_a_few_times_however_often_it_runs(notebook, monkeypatch):
    notebook.run("ts = [torch.ones(1) for _ in range(50)]\ndef f(ts): return ts")
    compared = []
    watched = notebook.tracker.write_recorder.watched
    changes = watched.changes
    monkeypatch.setattr(watched, "changes", lambda: compared.append(1) or changes())
    notebook.run("for _ in range(10_000):\n    f(ts)")
    assert len(compared) < 4 * HARMLESS


SKIPPED = """
    a, b = torch.ones(3), torch.ones(3)
    ws = [torch.ones(3, requires_grad=True) for _ in range(20)]
    def scale(i):
        if i == 15:
            b.mul_(2)
    def each():
        for i, w in enumerate(ws):
            {call}
            yield w
    for w in each():
        w.data += 1
"""


def test_a_line_that_writes_in_each_pass_is_compared_once_while_nothing_else_runs(notebook, monkeypatch):
    notebook.run(SKIPPED.format(call="pass"))
    compared = []
    changes = notebook.tracker.write_recorder.watched.changes
    monkeypatch.setattr(notebook.tracker.write_recorder.watched, "changes", lambda: compared.append(1) or changes())
    notebook.run("def step():\n    for w in ws:\n        w.data += 1\nfor _ in range(60):\n    step()")
    assert len(compared) < 1.3 * 60 * 20


def test_what_a_skipped_line_writes_before_such_a_line_is_not_said_to_be_that_lines(notebook):
    notebook.run(SKIPPED.format(call="scale(i)"))
    assert [w.by for w in notebook.tracker.writes if "b" in w.paths and w.by.startswith("w.data")] == []


@pytest.mark.parametrize("optimizer", ["Adam(net.parameters())", "SGD(net.parameters(), momentum=0.9)"])
def test_what_a_step_writes_to_the_state_of_its_optimizer_is_part_of_that_step(notebook, monkeypatch, optimizer):
    notebook.run(f"net = torch.nn.Linear(2, 1)\nopt = torch.optim.{optimizer}\nx = torch.ones(2)")
    notebook.run("net(x).sum().backward()\nopt.step()\nopt.zero_grad()")
    compared = []
    watched = notebook.tracker.write_recorder.watched
    changes = watched.changes
    monkeypatch.setattr(watched, "changes", lambda: compared.append(1) or changes())
    notebook.run("for _ in range(500):\n    net(x).sum().backward()\n    opt.step()\n    opt.zero_grad()")
    to_state = [w for w in notebook.tracker.writes if w.paths and all(".state" in path for path in w.paths)]
    last = [(w.place.outer_cell, w.place.line, w.place.iteration) for w in to_state[-200:]]
    assert last == [(3, 3, i) for i in range(300, 500)]
    assert len(notebook.tracker.drawing().steps) == 501
    assert len(compared) < 300  # not once in each pass


def test_tensors_that_were_swapped_are_still_watched(notebook):
    notebook.run("a, b = torch.zeros(2), torch.ones(2)\nb += 1")
    before = len(notebook.seen())
    notebook.run("torch.utils.swap_tensors(a, b)\nc = 1\na += 1")
    notebook.run("b += 1")
    assert [(line, paths) for _, line, paths in notebook.seen()[before:]] == [(3, ("a",)), (1, ("b",))]
    assert (notebook.namespace["a"].tolist(), notebook.namespace["b"].tolist()) == ([3, 3], [1, 1])


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("w.grad.zero_()", "w.grad"),
        ("made[1].add_(1)", "made[1]"),
        ("torch._foreach_mul_(made[:2], 2)", "made[0]"),
        ("by_name['b'].add_(1)", "by_name['b']"),
    ],
)
def test_gradients_and_elements_that_a_line_names_are_seen(notebook, line, path):
    notebook.run("import torch\nw = torch.ones(2, requires_grad=True)")
    notebook.run(
        f"(w * w).sum().backward()\nmade = [w.detach() * i for i in range(3)]\n"
        f"by_name = {{'a': w.detach() * 1, 'b': w.detach() * 2}}\n{line}"
    )
    assert [(at, paths[0]) for _, at, paths in notebook.seen()] == [(4, path)]


def test_all_names_of_one_memory_are_known(notebook):
    notebook.run("""
        import torch
        w = torch.ones(2, 3, requires_grad=True)
        def forward():
            base = w * 2
            a, b = base[0], base[1]
            c = w * 3
            a[0], b[0], c[0] = b[1] * 2, a[1] * 2, 0.0
            return base * c
        out = forward()
        """)
    write = notebook.tracker.writes[-1]
    assert len(write.paths) == len(write.storages) == 2
    assert {"a", "b", "c"} <= {*write.paths, *write.others} and not {*write.paths} & {*write.others}


def test_a_line_that_stores_what_a_step_returned_is_no_step_of_an_optimizer(notebook):
    notebook.run(
        "class Arm:\n    def step(self, s): return (s * w).tanh()\n"
        "w = torch.ones(4, requires_grad=True)\narm, path = Arm(), torch.zeros(4, 4)\n"
        "for t in range(3):\n    path[t + 1] = arm.step(path[t])"
    )
    writes = notebook.tracker.record().writes
    assert [(one.by, one.optimizer, one.paths, len(one.made)) for one in writes] == [
        ("path[t + 1] = arm.step(path[t])", False, ("path",), 1)
    ] * 3
