"""Programs whose graphs pile up, in many variants, and correct programs that look like them.

The truth is measured in plain torch: the number of nodes alive at the calls, with N iterations and with 2 N.
"""

import gc
import re
from pathlib import Path

import pytest
from runs import plain
from runs.warm import forked

HERE = Path(__file__).parent / "piles"
PILES = {path.stem: path for path in sorted(HERE.glob("*.py"))}
CLEAN = {path.stem: path for path in sorted((HERE / "clean").glob("*.py"))}


@pytest.fixture(scope="module", autouse=True)
def torch_is_here():
    """Import torch once: every program runs in a fork of this process."""
    plain.preload()


def test_there_are_enough():
    assert len(PILES) >= 8 and len(CLEAN) >= 12


def most_nodes_alive(times, path):
    """Return the largest number of nodes alive at the start of a sampled backward call, or at the program's end."""
    import contextlib
    import io

    import torch

    def alive():
        gc.collect()
        tensors = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor) and o.grad_fn is not None]
        found, todo = set(), [tensor.grad_fn for tensor in tensors]
        while todo:
            node = todo.pop()
            if node is not None and node not in found:
                found.add(node)
                todo.extend(following for following, _ in node.next_functions)
        return len(found)

    most = calls = 0
    gc.collect()
    gc.freeze()  # older objects need not be searched
    engine = torch.autograd.graph._engine_run_backward

    def counting(*args, **kwargs):
        nonlocal most, calls
        calls += 1
        if not calls & ((1 << max(calls.bit_length() - 2, 0)) - 1):  # 1, 2, 3, 4, 6, 8, 12, ...
            most = max(most, alive())
        return engine(*args, **kwargs)

    torch.manual_seed(0)
    torch.autograd._engine_run_backward = torch.autograd.graph._engine_run_backward = counting
    text = re.sub(r"^N = (\d+)$", lambda m: f"N = {int(m[1]) * int(times)}", Path(path).read_text(), flags=re.M)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, path, "exec"), {"__name__": "__main__"})
    return {"nodes": max(most, alive())}


def growth(path):
    """Return how many more nodes per iteration are alive if the program makes twice as many iterations."""
    n = int(re.search(r"^N = (\d+)$", path.read_text(), re.M)[1])
    once, twice = (plain.child(most_nodes_alive, times, str(path))["nodes"] for times in ("1", "2"))
    return (twice - once) / n


def loud(document):
    return [f"{f['kind']}: {f['headline']}" for f in document["findings"] if f["severity"] != "info"]


def header(path, key):
    found = re.search(rf"^# {key}: (.*)$", path.read_text(), re.M)
    return found and found[1]


@pytest.mark.parametrize("name", PILES)
def test_what_piles_up_is_found_with_its_holder(name):
    path = PILES[name]
    document, why_not = forked(str(path))
    assert document is not None, why_not
    found = [f for f in document["findings"] if f["kind"] == "leak" and f["severity"] == "warning"]
    mine = [f for f in found if any(re.fullmatch(header(path, "holder"), carrier) for carrier in f["carriers"])]
    assert mine, document["findings"]
    n = re.search(r"^N = (\d+)$", path.read_text(), re.M)[1]
    wanted = header(path, "iterations")
    if wanted:
        assert f"of {wanted.replace('N', n)} iterations" in mine[0]["headline"]
    assert not [fix for f in found for fix in f["fixes"] for line in fix["edit"] if re.match(r"\+ del .*\.", line)]


@pytest.mark.parametrize("name", CLEAN)
def test_a_correct_program_is_no_pile(name):
    document, why_not = forked(str(CLEAN[name]))
    assert document is not None, why_not
    assert not document["errors"] and loud(document) == []


@pytest.mark.parametrize("name", PILES)
def test_it_does_pile_up(name):
    if "retain" not in name and "reset" not in name:  # these programs have a bound
        assert growth(PILES[name]) >= 0.5


@pytest.mark.parametrize("name", CLEAN)
def test_it_does_not_pile_up(name):
    assert growth(CLEAN[name]) < 0.1 or "losses" in name  # a list filled first keeps its graphs until they run
