"""What only the notebook keeps: told as worth knowing where somebody works on in the kernel, and it is much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.diagnosis.findings import notebook_keeps
from graphwidget.notebook import session

N_MUCH = 2**20 // 4 + 1  # float32 elements that are more than a megabyte


@pytest.fixture
def findings(shell: Any, run: Any) -> Any:
    """Run cells as in a kernel; what is said after the last."""

    def of(*cells: str) -> list[Any]:
        session.tracker_of(shell).notebook = True
        return run(*cells)

    return of


def displayed(elements: int) -> tuple[str, ...]:
    return (f"x = torch.ones({elements}, requires_grad=True)", "y = x.exp()\ny", "del y")


def test_a_displayed_tensor_whose_variable_is_gone(findings: Any) -> None:
    (finding,) = findings(*displayed(N_MUCH))
    assert finding.severity == "info" and finding.bytes == 4 * N_MUCH
    assert finding.text.startswith("`y` is gone, but IPython keeps what In[3] displayed. Its graph stays, with 1.0 MB")
    told = " ".join((finding.headline, finding.text, *finding.carriers, *(fix.text for fix in finding.fixes)))
    assert "Out[" not in told and "`_" not in told


def test_less_than_a_megabyte_is_no_word_worth(findings: Any) -> None:
    assert findings(*displayed(1000)) == []


def test_a_lecture_displays_its_loss(findings: Any) -> None:
    loop = "for i in range(5):\n    loss = (w * big).exp().sum()\n    loss.backward()\nloss"
    made = f"big = torch.ones({N_MUCH})\nw = torch.ones({N_MUCH}, requires_grad=True)"
    assert findings(made, loop, "del loss", "loss = (w * 2).sum()\nloss", "loss = 0", "1", "2") == []


def test_what_something_else_keeps_does_not_count(findings: Any) -> None:
    made, show, drop = displayed(N_MUCH)
    assert findings(made, show, "loss = (y * 2).sum()", drop) == []


def test_what_only_the_last_three_outputs_keep_goes_by_itself(findings: Any, shell: Any) -> None:
    made, show, drop = displayed(N_MUCH)
    assert findings(made, show, "Out.clear()", drop) == []
    assert "_" in shell.user_ns


def test_a_name_of_ipythons_own_is_not_one_to_call_backward_on(findings: Any) -> None:
    made = "w = torch.ones(3, requires_grad=True)\nh = w * 1"
    stale = "h.exp_()\n(h * h).sum()", "1", "2", "h.mul_(2)"
    told = " ".join(f.text for f in findings(made, *stale))
    assert "_.backward" not in told and "Out[" not in told


def step(error: str) -> tuple[str, ...]:
    function = f"def step():\n    act = (x * 2).exp()\n    kept = act * act\n    {error}"
    return f"x = torch.ones({N_MUCH}, requires_grad=True)", function, "step()"


def test_after_an_error_of_another_kind_nothing_is_said_of_the_traceback(findings: Any) -> None:
    assert findings(*step("raise ValueError('bad batch')")) == []


def test_after_out_of_memory_what_the_traceback_keeps_is_worth_knowing(findings: Any) -> None:
    (finding,) = findings(*step("raise RuntimeError('out of memory. Tried to allocate 2 GiB')"))
    assert finding.severity == "info" and finding.bytes >= 4 * N_MUCH
    assert (
        finding.headline == f"The last error keeps {finding.text.split(' keep ')[1].split(' of ')[0]} of saved tensors."
    )


def test_after_a_failed_call_it_comes_after_the_reason(findings: Any) -> None:
    error = "loss = (act * 3).sum()\n    loss.backward()\n    loss = (act * 4).sum() + act.sum()\n    loss.backward()"
    first, *rest = findings(*step(error))
    assert first.severity == "error" and [f.severity for f in rest] == ["info"] * len(rest)


def test_not_in_a_terminal_nor_in_the_command_line(run: Any) -> None:
    assert run(*displayed(N_MUCH)) == []
    assert run(*step("raise RuntimeError('out of memory')"), ids="hijk") == []


def test_the_threshold_can_be_another(shell: Any, findings: Any) -> None:
    findings(*displayed(1000))
    record = session.tracker_of(shell).record()
    assert diagnose(record) == () and list(notebook_keeps.find(record, much=4001)) == []
    assert [f.bytes for f in notebook_keeps.find(record, much=4000)] == [4000]


@pytest.fixture
def kernel() -> Iterator[Any]:
    manager, client = start_new_kernel(kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def _says(kernel: Any, *cells: str) -> str:
    """What the cells print."""
    said: list[str] = []
    for cell in cells:
        kernel.execute_interactive(
            cell,
            timeout=60,
            output_hook=lambda m: said.append(m["content"].get("text", "")) if m["msg_type"] == "stream" else None,
        )
    return "".join(said)


def test_in_a_real_kernel(kernel: Any) -> None:
    made, show, drop = displayed(N_MUCH)
    said = _says(kernel, "%load_ext graphwidget\nimport torch", made, show, drop, "%graphwidget explain")
    assert "What In[3] displayed keeps the graph of `y`." in said


@pytest.mark.parametrize("kept", ["displayed", "the last error"])
def test_what_is_advised_lets_it_go(kernel: Any, kept: str) -> None:
    """As many references as Python and IPython keep: the tensor is gone after the edit, and not before."""
    made, show, drop = displayed(N_MUCH)
    cells = [made, f"{show.splitlines()[0]}\nref = weakref.ref(y)\ny", drop]
    if kept == "the last error":
        made, function, call = step("global ref; ref = weakref.ref(kept); raise RuntimeError('out of memory')")
        cells = [made, function, call]
    load = "%load_ext graphwidget\nimport torch, weakref\nimport graphwidget as gw"
    _says(kernel, load, *cells)
    alive = "print(ref() is not None)"
    assert _says(kernel, alive) == "True\n"
    edit = "print(*(line[2:] for line in gw.explain()[0].fixes[-1].edit), sep='\\n')"
    _says(kernel, _says(kernel, edit))
    assert _says(kernel, alive) == "False\n"
