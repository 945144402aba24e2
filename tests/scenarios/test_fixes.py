"""Fixes are concrete: applied to the program by a machine, they make the error or the pile of graphs go away."""

import gc
import tempfile
from pathlib import Path

import pytest
import truths
from runs import editor
from runs.plain import Runner, child, parse, preload, run_order

KINDS = {"second_backward": "second_backward", "inplace": "inplace", "leak": "leak", "element0": "no_grad"}


def with_fixes():
    for name, scenario in truths.scenarios().items():
        truth = scenario.truth
        ours = not truth.get("leak", {}).get("holder", "").startswith("Out[")  # plain torch has no IPython history
        if truth["kind"] in KINDS and truth["fixes"] and ours:
            yield name, scenario


SCENARIOS = dict(with_fixes())


@pytest.fixture(scope="module", autouse=True)
def torch_is_here():
    """Import torch once: every program runs in a fork of this process."""
    preload()


def run_plainly(name, cells, order):
    """Run cells in plain torch; return the messages of errors, and the nodes still alive at the end."""
    header = f"# run_order: {' '.join(map(str, order))}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(header + "".join(f"# %%\n{cell}" for cell in cells))
        return child(run_and_count, name, str(path))


def run_and_count(name, path):
    import contextlib
    import io

    import torch

    def tensors_alive():
        return [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]

    torch.manual_seed(0)
    others = {id(o) for o in tensors_alive()}  # from this process before the fork
    with contextlib.redirect_stdout(io.StringIO()):
        runner = Runner(name, path).run()
    gc.collect()
    tensors = [o for o in tensors_alive() if id(o) not in others]
    # A graph that only `.grad` refers to: create_graph cycles.
    tensors += [t.grad for t in tensors if t.is_leaf and t.grad is not None]
    seen, stack = {}, [t.grad_fn for t in tensors if t.grad_fn is not None]
    while stack:
        node = stack.pop()
        if id(node) not in seen:
            seen[id(node)] = node
            stack.extend(n for n, _ in node.next_functions if n is not None)
    return {"errors": [e["type"] + e["message60"] for e in runner.errors], "nodes": len(seen)}


def fixes_of(name, document):
    kind = KINDS[SCENARIOS[name].truth["kind"]]
    found = [f for f in document["findings"] if f["kind"] == kind and f["severity"] in ("error", "warning")]
    return [fix for finding in found[:1] for fix in finding["fixes"] if fix["verified"]]


def outcomes(name, document):
    """Yield (fix id, the failure or None) for every verified fix of the first finding."""
    truth, path = SCENARIOS[name].truth, str(SCENARIOS[name].path)
    header, cells = parse(path)
    sources = [text for _, text in cells]
    order = run_order(header, len(cells))
    before = run_plainly(name, sources, order)
    step = truth["errors"][0]["step"] if truth["errors"] else 0
    for fix in fixes_of(name, document):
        try:
            changed = editor.apply(sources, fix, order, step)
        except editor.CannotApply as why:
            yield fix["id"], str(why)
            continue
        after = run_plainly(name, *changed)
        if "harness_error" in after:
            yield fix["id"], after["harness_error"][-300:]
        elif truth["kind"] == "leak":
            less = after["nodes"] * 2 <= before["nodes"] and after["errors"] == before["errors"]
            yield fix["id"], None if less else f"{before} {after}"
        else:
            yield fix["id"], "; ".join(after["errors"]) or None


def test_there_are_enough_programs_with_fixes():
    assert len(SCENARIOS) >= 60


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_fix_applied_by_a_machine_works(explanation, name):
    results = list(outcomes(name, explanation(name)))
    assert results or SCENARIOS[name].truth["kind"] == "element0"  # without a graph, no fix can be simulated
    assert not [result for result in results if result[1]]
