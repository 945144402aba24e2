"""What a hook returns and PyTorch refuses: a hook that looks returns nothing; else the value is made like the gradient."""

import pytest
from told import findings_of

NET = "net = nn.Linear(3, 2)\nx = torch.randn(4, 3, requires_grad=True)\nlog, stats = [], {}"
HOOKED = "y = net(x)\ny.register_hook({})\ny.sum().backward()"
MODULE = "net.register_full_backward_hook({})\nnet(x).sum().backward()"

LOOKING = {
    "what was kept": ("def look(g):\n    log.append(g.norm(dim=-1))\n    return log[-1]", "look", ""),
    "made by a function": (
        "def watch(name):\n    def hook(g):\n        n = g.norm()\n        stats[name] = n.item()\n        return n\n"
        "    return hook",
        "watch('y')",
        "",
    ),
    "a method": (
        "class Watch:\n    last = None\n    def look(self, g):\n        self.last = g.abs().mean(0)\n"
        "        return self.last\nwatch = Watch()",
        "watch.look",
        "",
    ),
    "an object": (
        "class Watch:\n    def __call__(self, g):\n        log.append(1)\n        return log[-1]",
        "Watch()",
        "",
    ),
    "a lambda": ("", "lambda g: log.append(g.norm()) or g.norm()", "log.append(g.norm())"),
    "what it does is kept": (
        "def note(v):\n    log.append(v)\n    return v\ndef look(g):\n    return note(g.norm())",
        "look",
        "note(g.norm())",
    ),
}


@pytest.mark.parametrize("case", LOOKING)
def test_a_hook_that_only_looks_returns_nothing(case: str) -> None:
    hook, registered, new = LOOKING[case]
    (found,) = findings_of(NET, hook or "pass", HOOKED.format(registered))
    (fix,) = found.fixes
    assert (fix.id, fix.choice) == ("return_nothing", False)
    assert [edit.new for edit in fix.edits] == [new]


def test_a_hook_of_a_module_that_hands_back_what_it_was_given_only_looks() -> None:
    hook = "def look(m, gi, go):\n    stats['out'] = go[0].norm()\n    return go"
    (found,) = findings_of(NET, hook, MODULE.format("look"))
    assert [(fix.id, fix.choice) for fix in found.fixes] == [("return_nothing", False)]


def test_a_value_that_may_be_meant_as_the_gradient_is_a_choice() -> None:
    (found,) = findings_of(NET, "def h(g):\n    print(g.norm())\n    return g.clamp(-1, 1).sum(0)", HOOKED.format("h"))
    assert [(fix.id, fix.choice) for fix in found.fixes] == [("return_nothing", True), ("matching_gradient", False)]
    assert found.fixes[1].edits[0].new == "g.clamp(-1, 1).sum(0, keepdim=True).expand_as(g)"


@pytest.mark.parametrize(
    ("value", "new"),
    [
        ("g.mean(dim=1)", "g.mean(dim=1, keepdim=True).expand_as(g)"),
        ("g.mean()", "g.mean().expand_as(g)"),
        ("(g * 2).flatten()", ".reshape_as(g)"),
        ("g.double() * 2", "(g.double() * 2).to(g)"),
        ("(g * 2,)", "g * 2"),
        ("g[:1]", None),
    ],
)
def test_a_hook_that_does_nothing_but_compute_is_to_change_the_gradient(value: str, new: str | None) -> None:
    (found,) = findings_of(NET, HOOKED.format(f"lambda g: {value}"))
    assert [fix.id for fix in found.fixes] == ["matching_gradient"]
    assert [edit.new for edit in found.fixes[0].edits] == ([new] if new else [])


def test_a_hook_after_the_gradient_was_written_returns_nothing() -> None:
    hook = "def h(p):\n    log.append(p.grad.norm())\n    return p.grad"
    cells = (NET, hook, "net.weight.register_post_accumulate_grad_hook(h)", "net(x).sum().backward()")
    (found,) = findings_of(*cells)
    assert found.fixes[0].id == "return_nothing" and [edit.new for edit in found.fixes[0].edits] == [""]
