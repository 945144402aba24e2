"""The module of a library in which a line is refused: named by its path, with what it was running."""

from told import findings_of

IMPORT = "from torch.func import functional_call, grad, vmap\nx = torch.randn(4, 3)"
BLOCKS = "def block():\n    return nn.Sequential(nn.Linear(3, 3), nn.{})\nnet = nn.Sequential(block(), block())"
LOSS = (
    "def loss(p, x):\n    return functional_call(net, p, (x,)).sum()\ng = grad(loss)(dict(net.named_parameters()), x)"
)


def test_a_buffer_that_is_written_in_a_transform_is_named_with_its_module() -> None:
    (found,) = findings_of(IMPORT, BLOCKS.format("BatchNorm1d(3)"), LOSS)
    assert found.headline.startswith("`net[0][1]` (a `BatchNorm1d`) writes to its buffer `num_batches_tracked`")
    assert "`self.num_batches_tracked.add_(1)`" in found.text
    assert {"net[0][1]", "BatchNorm1d", "net[0][1].num_batches_tracked"} <= set(found.names)
    (fix,) = found.fixes
    assert fix.choice and [edit.new for edit in fix.edits] == [", track_running_stats=False"]


def test_a_module_that_only_an_object_holds_is_named_by_its_attribute() -> None:
    run = (
        "class Run:\n    def __init__(self):\n        self.net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))\n"
        "    def loss(self, p):\n        return functional_call(self.net, p, (x,)).sum()\n"
        "    def step(self):\n        return grad(self.loss)(dict(self.net.named_parameters()))"
    )
    (found,) = findings_of(IMPORT, run, "Run().step()")
    assert "self.net[1]" in found.names


def test_other_refusals_tell_the_module_too() -> None:
    (found,) = findings_of(IMPORT, BLOCKS.format("Dropout(0.5)"), "vmap(net)(torch.randn(2, 4, 3))")
    assert "`net[0][1]` (a `Dropout`)" in found.text and found.fixes[0].id == "say_randomness"


def test_a_module_that_writes_to_a_leaf_is_made_otherwise() -> None:
    net = "net = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 1))\nx.requires_grad_()"
    (found,) = findings_of(IMPORT, net, "net(x).sum().backward()")
    assert found.headline.startswith("`net[0]` (a `ReLU`) writes to a leaf")
    assert found.fixes[0].id == "out_of_place" and [edit.new for edit in found.fixes[0].edits] == ["False"]


def test_a_line_of_the_programs_own_module_is_told_by_itself() -> None:
    own = (
        "class Count(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('n', torch.zeros(()))\n    def forward(self, x):\n        self.n.add_(1)\n"
        "        return x\nnet = nn.Sequential(nn.Linear(3, 3), Count())"
    )
    (found,) = findings_of(IMPORT, own, LOSS)
    assert found.headline.startswith("`self.n.add_(1)` writes") and "The error was raised in" not in found.text


def test_the_buffers_that_a_line_of_a_library_uses_are_in_the_text() -> None:
    (found,) = findings_of(IMPORT, BLOCKS.format("BatchNorm1d(3)"), "vmap(net)(torch.randn(2, 4, 3))")
    assert "reads or writes its buffers `running_mean` and `running_var`" in found.text
