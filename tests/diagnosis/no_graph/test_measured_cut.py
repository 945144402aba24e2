"""The line that left the graph, where it has been measured."""

from __future__ import annotations

from dataclasses import replace

from told import record_of

from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.model import Finding, FrozenModule, Lineage, MeasuredCut, TextLine

TWO = """actor, critic = nn.Linear(2, 1), nn.Linear(1, 1)
def freeze(one):
    one.requires_grad_(False)
freeze(critic)
opt = torch.optim.SGD(critic.parameters(), 0.1)
def loss_of(x):
    given = actor(x).detach()
    return critic(given).sum()"""
STEP = "loss = loss_of(torch.ones(1, 2))\nopt.zero_grad()\nloss.backward()"
METER = """class Meter:
    def update(self, v):
        self.sum = v.item()
        return self
    def mean(self):
        return torch.tensor(self.sum / 3)"""
MEAN = "net = nn.Linear(2, 1)\nloss = Meter().update(net(torch.ones(1, 2)).sum()).mean()\nloss.backward()"


def no_graph(*cells: str, **lineage: object) -> Finding:
    record = record_of(*cells)
    (call,) = (one.n for one in record.calls if one.result == "raised")
    found = diagnose(replace(record, lineage=Lineage(call, **lineage)))  # type: ignore[arg-type]
    (finding,) = (one for one in found if one.kind == "no_grad")
    return finding


TOWERS = """users, items = nn.Linear(2, 2), nn.Linear(2, 2)
opt = torch.optim.SGD([*users.parameters(), *items.parameters()], 0.1)
def of_items(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        return items(x)
def loss_of(x):
    return (users(x).detach() * of_items(x)).sum()"""
IN_STACK = MeasuredCut(
    (TextLine(2, None, 6), TextLine(2, None, 8)),
    "linear",
    False,
    (),
    True,
    (TextLine(2, None, 5), TextLine(2, None, 8)),
)
OF_USERS = MeasuredCut((TextLine(2, None, 8),), "detach", True, (), True)


def test_each_measured_line_is_offered() -> None:
    found = no_graph("import contextlib", TOWERS, STEP, behind_root=(OF_USERS, IN_STACK))
    assert [fix.edit for fix in found.fixes] == [
        ("- return (users(x).detach() * of_items(x)).sum()", "+ return (users(x) * of_items(x)).sum()"),
        ("- stack.enter_context(torch.no_grad())",),
    ]
    first = no_graph("import contextlib", TOWERS, STEP, behind_root=(IN_STACK,))
    assert first.text.startswith("`stack.enter_context(torch.no_grad())` (In[2], line 5) switched grad mode off")


OWN_MODE = """@contextlib.contextmanager
def evaluating(net):
    with torch.no_grad():
        yield net.eval()
net = nn.Linear(2, 1)
def loss_of(x):
    with evaluating(net) as one:
        return one(x).sum()
opt = torch.optim.SGD(net.parameters(), 0.1)"""


def test_a_line_in_a_block_of_another_kind_gets_grad_mode_back() -> None:
    lines = tuple(TextLine(2, None, line) for line in (8,))
    switched = tuple(TextLine(2, None, line) for line in (3, 7))
    off = MeasuredCut(lines, "linear", False, (), True, switched)
    found = no_graph("import contextlib", OWN_MODE, STEP, behind_root=(off,))
    assert found.fixes[0].edit == (
        "- return one(x).sum()",
        "+ with torch.enable_grad():",
        "+     return one(x).sum()",
    )


def cut(cell: int, line: int, by: str, *, wanted: bool) -> MeasuredCut:
    return MeasuredCut((TextLine(cell, None, line),), by, True, (), wanted)


def test_a_frozen_module_is_the_cause_if_no_cut_is_of_what_should_train() -> None:
    frozen = (FrozenModule("critic", (TextLine(1, None, 3), TextLine(1, None, 4))),)
    found = no_graph(TWO, STEP, behind_root=(cut(1, 7, "detach", wanted=False),), frozen=frozen)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 3)
    assert found.fixes[0].id == "unfreeze" and not found.fixes[0].verified


def test_a_cut_of_what_should_train_is_the_cause_beside_a_frozen_module() -> None:
    frozen = (FrozenModule("critic", (TextLine(1, None, 3),)),)
    found = no_graph(TWO, STEP, behind_root=(cut(1, 7, "detach", wanted=True),), frozen=frozen)
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 7)
    assert found.fixes[0].edit == ("- given = actor(x).detach()", "+ given = actor(x)")


def test_a_measured_line_needs_no_if() -> None:
    known = no_graph(
        TWO, STEP, behind_root=(cut(1, 7, "detach", wanted=True),), cuts=(cut(1, 7, "detach", wanted=True),)
    )
    assert "if what it reads had one" not in known.text


def test_a_root_made_of_numbers_has_the_only_line_that_made_numbers() -> None:
    one = cut(1, 3, "item", wanted=True)
    found = no_graph(METER, MEAN, cuts=(one,))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 3)
    two = no_graph(METER, MEAN, cuts=(one, cut(2, 2, "tolist", wanted=True)))
    assert two.cause is None or (two.cause.cell, two.cause.line) != (2, 2)


def test_what_was_measured_of_another_call_is_not_told() -> None:
    record = record_of(TWO, STEP)
    plain = diagnose(record)
    other = Lineage(99, (cut(1, 7, "detach", wanted=True),))
    assert diagnose(replace(record, lineage=other))[0].text == plain[0].text


STARVED = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(5, 3), nn.Linear(3, 1)
    def forward(self, at):
        kept = {}
        for name in ("a", "b"):
            kept.update({name: hidden(self.embed(at))})
        return self.head(kept["a"] + kept["b"])
net = Net()
opt = torch.optim.SGD(net.parameters(), 0.1)"""
HIDDEN = "hidden = lambda v: v.clone().detach_()"
TRAIN = """for _ in range(4):
    opt.zero_grad()
    net(torch.tensor([1, 2])).sum().backward()
    opt.step()"""


def test_the_line_that_keeps_a_parameter_from_its_gradient_is_the_measured_one() -> None:
    record = record_of(HIDDEN, STARVED, TRAIN)
    cuts = (MeasuredCut((TextLine(1, None, 1), TextLine(2, None, 8)), "detach_", True, ("net.embed.weight",)),)
    (found,) = diagnose(replace(record, lineage=Lineage(None, cuts=cuts)))
    assert found.kind == "silent" and found.names[:1] in ((), ("net.embed.weight",))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 1)
    other = (MeasuredCut((TextLine(1, None, 1),), "detach_", True, ("net.head.weight",)),)
    assert diagnose(replace(record, lineage=Lineage(None, cuts=other))) == diagnose(record)

    by_position = MeasuredCut((TextLine(1, None, 1),), "detach_", True, ("other.embed.weight",), positions=((0, 0),))
    assert [one.cause for one in diagnose(replace(record, lineage=Lineage(None, cuts=(by_position,))))] == [found.cause]
    unused = replace(by_position, used=False)
    assert not diagnose(replace(record, lineage=Lineage(None, cuts=(unused,))))


TOKENS = """class Tokens:
    def __init__(self, table):
        self.table, self.kept = table, {}
    def __call__(self, n):
        if n not in self.kept:
            self.kept[n] = self.table.weight[:n].cumsum(0)
        return self.kept[n]
table, head = nn.Embedding(8, 3), nn.Linear(3, 1)
tokens = Tokens(table)
opt = torch.optim.SGD([*table.parameters(), *head.parameters()], 0.1)
with torch.no_grad():
    shape = tokens(4).shape"""
IN_TOKENS = MeasuredCut(
    (TextLine(1, None, 6), TextLine(1, None, 12)), "cumsum", False, ("table.weight",), True, (TextLine(1, None, 11),)
)


def test_what_was_made_once_without_grad_mode_is_to_be_made_in_each_pass() -> None:
    step = "opt.zero_grad()\nloss = tokens(4).sum()\nloss.backward()"
    found = no_graph(TOKENS, step, behind_root=(IN_TOKENS,))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 6)
    assert "It ran under `torch.no_grad()` (In[1], line 12), so what is kept has no graph." in found.text
    assert found.fixes[0].edit == (
        "- if n not in self.kept:",
        "-     self.kept[n] = self.table.weight[:n].cumsum(0)",
        "+ self.kept[n] = self.table.weight[:n].cumsum(0)",
    )


POINTS = """spots, gain = nn.Parameter(torch.rand(5, 2) * 7), nn.Parameter(torch.ones(1))
field = torch.rand(8, 8)
opt = torch.optim.SGD([spots, gain], 0.1)
def read(at):
    inside = (at > 0).all(1)
    cells = at.round().int()
    return field[cells[:, 0], cells[:, 1]] * inside"""


def test_indices_made_of_a_parameter_are_told_before_a_mask_of_it() -> None:
    train = "for _ in range(3):\n    opt.zero_grad()\n    (read(spots) * gain).sum().backward()\n    opt.step()"
    record = record_of(POINTS, train)
    mask = MeasuredCut((TextLine(1, None, 5),), "gt", True, ("spots",), used=True)
    cells = MeasuredCut((TextLine(1, None, 6),), "int", True, ("spots",), used=False, chosen=True)
    (found,) = diagnose(replace(record, lineage=Lineage(None, cuts=(mask, cells))))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 6)
    assert "So does `inside = (at > 0).all(1)` (In[1], line 5): a comparison has no derivative." in found.text
    assert "Whole numbers have no derivative" in found.fixes[0].text


def test_what_is_kept_may_be_asked_for_and_stored_by_other_names() -> None:
    tokens = (
        "class Tokens:\n    tables = {}\n    def table(self, n):\n        known = Tokens.tables.get(n)\n"
        "        if known is not None:\n            return known\n        made = weights[:n].cumsum(0)\n"
        "        Tokens.tables[n] = made\n        return made\n"
        "weights = nn.Parameter(torch.ones(8))\ntokens = Tokens()\nopt = torch.optim.SGD([weights], 0.1)\n"
        "with torch.no_grad():\n    size = tokens.table(4).shape"
    )
    lines = (TextLine(1, None, 7), TextLine(1, None, 14))
    cut = MeasuredCut(lines, "cumsum", False, ("weights",), True, (TextLine(1, None, 13),))
    found = no_graph(tokens, "loss = tokens.table(4).sum()\nloss.backward()", behind_root=(cut,))
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 7)
    assert found.fixes[0].edit == ("- if known is not None:", "-     return known")


def test_a_kept_value_that_starves_a_parameter_is_told_by_the_line_that_keeps_it() -> None:
    train = "for _ in range(3):\n    opt.zero_grad()\n    head(tokens(4)).sum().backward()\n    opt.step()"
    record = record_of(TOKENS, train)
    (found,) = diagnose(replace(record, lineage=Lineage(None, cuts=(replace(IN_TOKENS, used=True),))))
    assert found.tensor == "table.weight" and found.fixes[0].id == "recompute_in_loop"
    assert found.cause is not None and (found.cause.cell, found.cause.line) == (1, 6)
    (found,) = diagnose(replace(record, lineage=Lineage(None, cuts=(IN_TOKENS,))))  # whether it was used is not known
    assert found.fixes[0].id == "remove_no_grad"


def test_a_decorated_function_around_the_measured_line_is_the_cause_that_the_text_gives() -> None:
    net = "net = nn.Linear(1, 1)\n@torch.no_grad()\ndef evaluate(x):\n    return slope(x)"
    slope = "def slope(x):\n    y = net(x).sum()\n    return torch.autograd.grad(y, x)"
    lines = (TextLine(2, None, 2), TextLine(1, None, 4))
    off = MeasuredCut(lines, "linear", False, (), True)
    found = no_graph(net, slope, "evaluate(torch.ones(2, 1, requires_grad=True))", behind_root=(off,))
    assert "`@torch.no_grad()` of `evaluate` (In[1], line 2) is around it" in found.text


def test_a_comparison_is_named_as_such() -> None:
    record = record_of(HIDDEN.replace("v.clone().detach_()", "(v > 0).float()"), STARVED, TRAIN)
    cuts = (MeasuredCut((TextLine(1, None, 1),), "gt", True, ("net.embed.weight",), used=True),)
    (found,) = diagnose(replace(record, lineage=Lineage(None, cuts=cuts)))
    assert "a comparison has no derivative" in found.text and found.fixes[0].id == "straight_through"


ACTOR = """actor, critic = nn.Linear(2, 2), nn.Linear(2, 1)
opt = torch.optim.SGD([*actor.parameters(), *critic.parameters()], 0.1)"""
EPISODE = """for _ in range(4):
    pi = torch.distributions.Categorical(logits=actor(torch.ones(3, 2)))
    action = pi.sample()
    log_prob = pi.log_prob(action)
    kept = torch.tensor([one for one in log_prob])
    loss = (kept * (critic(torch.ones(3, 2)).squeeze(-1) + action)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()"""


def test_a_sample_that_is_scored_is_not_blamed_for_a_cut_of_the_score() -> None:
    record = record_of(ACTOR, EPISODE)
    assert not any("`sample`" in one.text for one in diagnose(record))
    sampled, copied = (
        MeasuredCut((TextLine(2, None, line),), by, True, ("actor.weight",), used=by == "tensor")
        for line, by in ((3, "multinomial"), (5, "tensor"))
    )
    for cuts in ((sampled, copied), (copied, sampled)):
        (found,) = diagnose(replace(record, lineage=Lineage(None, cuts=cuts)))
        assert found.cause is not None and (found.cause.cell, found.cause.line) == (2, 5)
        assert found.fixes[0].edit[-1] == "+ kept = torch.stack([one for one in log_prob])"
