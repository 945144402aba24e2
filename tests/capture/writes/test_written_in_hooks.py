"""Lines of hooks, and of functions given to torch's modules, are watched also while modules of torch's run."""

import pytest
from told import findings_of

NET = """
import functools
import torch
from torch import nn
torch.manual_seed(0)
log, seen = [], [0]
def centre(t):
    values = t.detach()
    values -= values.mean()
    log.append(values.std().item())
def at_times(t):
    seen[0] += 1
    if seen[0] % 3 == 0:
        centre(t)
def block(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, n_out), nn.Tanh())
net = nn.Sequential(nn.Sequential(block(4, 8), block(8, 4)), nn.Linear(4, 1))
{hook}
for i in range(6):
    net(torch.randn(6, 4)).pow(2).mean().backward()
"""
HOOKS = {
    "after an inner module": "net[0][1][1].register_forward_hook(lambda module, args, output: at_times(output))",
    "of a partial": """def record(name, module, args, output):
    at_times(output)
net[0][0][1].register_forward_hook(functools.partial(record, 'x'))""",
    "before an inner module": "net[0][1][0].register_forward_pre_hook(lambda module, args: at_times(args[0]))",
    "before the outermost module": "net[1].register_forward_pre_hook(lambda module, args: at_times(args[0]))",
    "of two": """for m in net.modules():
    if isinstance(m, nn.Tanh):
        m.register_forward_hook(lambda module, args, output: at_times(output))""",
}


@pytest.mark.parametrize("hook", HOOKS.values(), ids=HOOKS)
def test_the_line_that_writes_to_a_detached_alias(hook: str) -> None:
    (found,) = findings_of(NET.replace("{hook}", hook))
    assert found.modified_by == "values -= values.mean()" and "values" in found.names
    assert [edit.new for edit in found.fixes[0].edits] == ["values = values - values.mean()"]


def test_a_hook_of_all_modules() -> None:
    hook = """handle = nn.modules.module.register_module_forward_hook(
    lambda module, args, output: at_times(output) if isinstance(module, nn.Tanh) else None)"""
    ending = "\n".join(f"    {line}" for line in NET[NET.index("for i") :].splitlines())
    program = NET[: NET.index("for i")].replace("{hook}", hook) + f"try:\n{ending}\nfinally:\n    handle.remove()\n"
    (found,) = findings_of(program)
    assert found.modified_by == "values -= values.mean()"


def test_a_function_that_a_module_was_given() -> None:
    act = """def act(x):
    y = torch.tanh(x)
    centre(y)
    return y
inner = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, activation=act, batch_first=True)
net = nn.Sequential(nn.Sequential(inner), nn.Linear(4, 1))"""
    (found,) = findings_of(NET.replace("{hook}", act).replace("randn(6, 4)", "randn(6, 3, 4)"))
    assert found.modified_by == "values -= values.mean()"


def test_what_a_function_modifies_for_its_caller_is_still_handed_in_as_a_copy() -> None:
    text = NET.replace("values = t.detach()", "values = t").replace("    log.append(values.std().item())\n", "")
    hook = """def keep(module, args, output):
    with torch.no_grad():
        centre(output)
    return output
net[0][1][1].register_forward_hook(keep)"""
    (found,) = findings_of(text.replace("{hook}", hook))
    assert "Hand `centre` a copy" in found.fixes[0].text or "clone" in str(found.fixes[0].edits)
