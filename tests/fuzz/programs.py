"""Random programs for the differential fuzz: straight-line PyTorch, one statement a string.

`program(seed)` is deterministic. Every tensor is 4 x 4, so that any two fit; a statement that torch refuses in the
forward is simply skipped by the judge.
"""

from __future__ import annotations

import random

EXPRESSIONS = """
{a} * {b}; {a} * {b}; {a} + {b}; {a} @ {b}; {a} / ({b}.abs() + 1); {a} - {b}; {a} + 1; {a} * 3; {a} ** 2; -{a}
{a}.sin(); ({a} * 0.1).exp(); {a}.relu(); {a}.sigmoid(); {a}.tanh(); {a}.abs(); {a}.sign() * {b}
{a}.exp() * {b}.log1p(); {a}.clone(); {a}.detach() * {b}; {a}.detach(); {a}.double().float()
torch.where({b} > 0, {a}, {b}); torch.max({a}, {b}); {a}.t(); {a}.view(16).view(4, 4)
{a}.reshape(2, 8).t().reshape(4, 4); {a}.diagonal() + {b}; {a}[1:3].repeat(2, 1); {a}.expand(2, 4, 4).sum(0)
{a}.squeeze().unsqueeze(0)[0]; {a}.unbind(0)[2] + {b}; torch.split({a}, 2)[1].repeat(2, 1)
torch.cat([{a}, {b}])[:4]; torch.stack([{a}, {b}]).mean(0); torch.stack([{a}, {b}, {c}])[1]
{a}[torch.tensor([3, 1, 0, 2])]; {a}.sum() * torch.ones(4, 4); {a}.norm() * {b}; {a}.cumsum(0)
{a}.prod(dim=0) + {b}; {a}.var(0) + {b}; {a}.max(dim=0).values + {b}; {a}.softmax(-1); F.log_softmax({a}, 1)
F.cross_entropy({a}, torch.tensor([0, 1, 2, 3])) * {b}; F.mse_loss({a}, {b}) + {a}; {a}.sort(dim=1)[0]
torch.topk({a}, 2)[0].repeat(1, 2); {a}.gather(1, torch.zeros(4, 4, dtype=torch.long)); {a}[{b} > 0].sum() + {a}
torch.addmm({a}, {b}, {c}); torch.einsum("ij,jk->ik", {a}, {b}); torch.bmm({a}[None], {b}[None])[0]
torch.outer({a}[0], {b}[1]); F.gelu({a}); F.layer_norm({a}, (4,)); F.dropout({a}, 0.5); F.softplus({a})
F.batch_norm({a}, None, None, training=True); torch.complex({a}, {b}).abs(); torch.fft.fft({a}).real
{a}.masked_fill({b} > 0, 0.0); {a}.clamp(-1, 1); torch.lerp({a}, {b}, 0.3)
F.scaled_dot_product_attention({a}[None, None], {b}[None, None], {c}[None, None])[0, 0]
F.conv2d({a}[None, None], {b}[None, None, :3, :3], padding=1)[0, 0]; F.max_pool2d({a}[None, None], 3, 1, 1)[0, 0]
"""
IN_PLACE = """
{a}.add_(1); {a}.mul_({b}); {a}.relu_(); {a}.exp_(); {a}.copy_({b}); {a}.zero_(); {a}.sub_({b}); {a}.tanh_()
{a}.clamp_(-1, 1); {a}.add_({b}, alpha=2); {a}.div_({b}.abs() + 1); {a}.mul_(2); {a}.data.mul_(1.01)
"""
IN_PLACE_ON_VIEWS = """
{a}[:2].mul_(2); {a}[0].add_({b}[0]); {a}[:, 1].mul_({b}[:, 1]); {a}[1:3] = {b}[1:3]; {a}[0] = 0
{a}.view(16)[3:7].exp_(); {a}.t().add_({b}); {a}.diagonal().copy_({b}.diagonal()); {a}[{b} > 0] = 0.0
{a}.view(2, 8).zero_(); {a}[:2].tanh_(); {a}.t().mul_({b}); {a}[2].div_({b}[1]); {a}[:, :2].sigmoid_()
{a}[3].sub_(1); {a}.view(16).lerp_({b}.reshape(16), 0.1); {a}[1] *= {b}[2]; {a}[:2] += {b}[2:]; {a}[0].pow_({b}[1])
{a}[:3].masked_fill_({b}[:3] > 0, 1.0)
"""
CUSTOM = """
Square.apply({a}); SavesNothing.apply({a}); NeverReads.apply({a}); KeepsOnCtx.apply({a}); ReadsNothing.apply({a})
TwoOutputs.apply({a}, {b})[0]; TwoOutputs.apply({a}, {b})[1]; sum(TwoOutputs.apply({a}, {b}))
SavesOutput.apply({a}); NoneForOne.apply({a}, {b}); NoneForAll.apply({a}, {b}); OnceDifferentiable.apply({a})
WritesIntoInput.apply({a}.clone()); UndefinedGradients.apply({a})[0]; sum(UndefinedGradients.apply({a}))
OwnGraph.apply({a}); WritesIntoCopy.apply({a}); second_order({a}, {b}, OnceDifferentiable.apply)
second_order({a}, {b}, OnceDifferentiable.apply); second_order({a}, {b}, OnceDifferentiable.apply)
second_order({a}, {b}, torch.exp); second_order({a}, {b}, Square.apply)
"""
OPAQUE = "Elsewhere.apply({a}); Raises.apply({a}); ReadsPerhaps.apply({a})"
CHECKPOINTS = """
checkpoint(one, {a}, use_reentrant=REENTRANT); checkpoint(two, {a}, {b}, use_reentrant=REENTRANT)
checkpoint(noisy, {a}, use_reentrant=REENTRANT); checkpoint(closing_over(CLOSED), {a}, use_reentrant=REENTRANT)
"""
LAYERS = {
    "linear": ("nn.Linear(4, 4)", "{m}({a})"),
    "mlp": ("nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))", "{m}({a})"),
    "conv": ("nn.Conv2d(1, 1, 3, padding=1)", "{m}({a}[None, None])[0, 0]"),
    "norm": ("nn.BatchNorm1d(4)", "{m}({a})"),
    "embedding": ("nn.Embedding(6, 4)", "{m}(torch.tensor([0, 1, 1, 5])) + {a}"),
    "lstm": ("nn.LSTM(4, 4)", "{m}({a})[0]"),
    "attention": ("nn.MultiheadAttention(4, 2)", "{m}({a}, {a}, {a})[0]"),
    "bilinear": ("nn.Bilinear(4, 4, 4)", "{m}({a}, {b})"),
}
OPTIMIZERS = ("SGD([w0, w1], lr=0.1)", "SGD([w0, w1], lr=0.1, momentum=0.9)", "Adam([w0, w1], lr=0.1)")


def templates(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(";")]


TABLES = {
    "expression": templates(EXPRESSIONS),
    "in_place": templates(IN_PLACE),
    "on_view": templates(IN_PLACE_ON_VIEWS),
    "custom": templates(CUSTOM),
    "opaque": templates(OPAQUE),
    "checkpoint": templates(CHECKPOINTS),
}


def program(seed: int, steps: int = 46) -> list[str]:
    """Return the statements of program `seed`, to run after `from tests.fuzz.prelude import *`."""
    return _Program(seed).write(steps)


def source(seed: int) -> str:
    """Return the same program as a script that can run alone."""
    return "\n".join(["from tests.fuzz.prelude import *", f"torch.manual_seed({seed})", *program(seed)])


class _Program:
    """Builds a program statement by statement; `tensors` and `leaves` are the names that exist so far."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.tensors: list[str] = []
        self.scalars: list[str] = []
        self.modules: set[str] = set()
        self.names = 0
        self.writes = self.chance(0.85)  # else a program without any in-place write
        self.surprises = self.chance(0.15)  # a program with Python code that no forecast can follow
        self.optimizer = self.chance(0.5)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def choose(self, options):
        return self.random.choice(list(options))

    def write(self, steps: int) -> list[str]:
        for _ in range(3):
            self.leaf()
        self.lines.append("x0 = torch.rand(4, 4)")
        if self.optimizer:
            self.lines.append(f"optimizer = torch.optim.{self.choose(OPTIMIZERS)}")
        kinds = (self.forward, self.call, self.layer, self.write_in_place, self.custom, self.packed, self.checkpoint,
                 self.hook, self.state, self.threaded)  # fmt: skip
        for _ in range(steps):
            self.random.choices(kinds, weights=(40, 25, 4, 9, 9, 3, 3.5, 1.5, 2.5, 2.5))[0]()
        return self.lines

    # -- names

    def new(self) -> str:
        self.names += 1
        return f"t{self.names}"

    def leaf(self) -> None:
        self.leaves.append(f"w{len(self.leaves)}")
        self.lines.append(f"{self.leaves[-1]} = torch.rand(4, 4, requires_grad=True)")

    def pick(self) -> str:
        """Choose a tensor, mostly a recent one."""
        if self.tensors and self.chance(0.75):
            return self.choose(self.tensors[-7:])
        return self.choose(self.leaves + self.tensors + (["x0"] if self.chance(0.4) else []))

    def fill(self, template: str, **names: str) -> str:
        return template.format(**{"a": self.pick(), "b": self.pick(), "c": self.pick(), **names})

    def draw(self, table: str, **names: str) -> str:
        return self.fill(self.choose(TABLES[table]), **names)

    def assign(self, expression: str, prefix: str = "") -> None:
        name = self.new()
        self.lines.append(f"{prefix}{name} = {expression}")
        self.tensors.append(name)
        if len(self.tensors) > 22:
            gone = self.tensors.pop(self.random.randrange(len(self.tensors) - 8))
            if self.chance(0.7):
                self.lines.append(f"del {gone}")

    # -- statements

    def forward(self) -> None:
        self.assign(self.draw("expression"))

    def layer(self) -> None:
        kind = self.choose(LAYERS)
        made, used = LAYERS[kind]
        if kind not in self.modules:
            self.modules.add(kind)
            self.lines.append(f"m_{kind} = {made}")
        self.assign(self.fill(used, m=f"m_{kind}"))

    def write_in_place(self) -> None:
        if not self.writes:
            return
        if self.chance(0.5):
            self.lines.append(self.draw("in_place"))
            return
        if self.chance(0.3):
            self.assign(self.fill("{a}.clone()"))
        latest = {"a": self.tensors[-1]} if self.tensors and self.chance(0.4) else {}
        self.lines.append(self.draw("on_view", **latest))

    def custom(self) -> None:
        self.assign(self.draw("opaque" if self.surprises and self.chance(0.25) else "custom"))

    def packed(self) -> None:
        hooks = self.choose(["pack, unpack", "pack_copy, unpack_copy"])
        self.assign(self.draw(self.choose(["expression", "custom"])), prefix=f"with saved_tensors_hooks({hooks}): ")

    def checkpoint(self) -> None:
        reentrant = self.chance(1 / 3)
        # The backward of a re-entrant checkpoint enters the graph of a tensor that its function closes over.
        closed = self.pick() if not reentrant or self.surprises else "w2"
        self.assign(self.draw("checkpoint").replace("REENTRANT", str(reentrant)).replace("CLOSED", closed))

    def hook(self) -> None:
        kinds = [
            f"{self.pick()}.retain_grad()",
            f"harmless_hook({self.pick()})",
            f"harmless_leaf_hook({self.choose(self.leaves)})",
        ]
        if self.surprises:
            kinds += [
                f"nested_hook({self.pick()}, {self.pick()})",
                f"raising_hook({self.pick()})",
                f"optimizing_hook({self.choose(self.leaves)})",
                f"ELSEWHERE.append({self.pick()})",
            ]
        self.lines.append(self.choose(kinds))

    def state(self) -> None:
        """Add a statement between forward and backward: a step, a flag, a deletion."""
        leaf = self.choose(self.leaves)
        kinds = [self.leaf, lambda: self.assign(self.draw("expression"), prefix="with torch.no_grad(): ")]
        if self.tensors:
            kinds.append(lambda: self.lines.append(f"del {self.tensors.pop(self.random.randrange(len(self.tensors)))}"))
        if self.writes:
            several = [
                f"with torch.no_grad(): {leaf}.sub_(0.1)",
                f"{leaf}.requires_grad_({self.chance(0.5)})",
                f"{self.pick()}.detach_()",
                f"{leaf}.requires_grad_(False); {leaf}.mul_({self.pick()})",
            ]
            if self.optimizer:
                several += ["optimizer.step()"] * 3
                several.append(f"optimizer.step(); optimizer.zero_grad(set_to_none={self.chance(0.5)})")
            kinds.append(lambda: self.lines.append(self.choose(several)))
        self.choose(kinds)()

    def threaded(self) -> None:
        self.assign(f"in_thread(lambda: {self.draw(self.choose(['expression', 'custom']))})")

    # -- backward calls

    def call(self) -> None:
        recent = (self.tensors or self.leaves)[-9:]
        roots = [
            self.choose(recent if self.chance(0.8) else self.tensors + self.leaves)
            for _ in range(self.choose([1, 1, 1, 1, 2, 2, 3]))
        ]
        roots += [roots[0]] * self.chance(0.06) + ["x0"] * self.chance(0.03)
        options = self._options()
        creates = "create_graph" in options
        listed = ", ".join(roots)
        ones = f"[torch.ones_like(r) for r in ({listed},)]"
        form = self.random.random()
        if form < 0.3:
            self._call(f"torch.autograd.backward([{listed}], {ones}{options})")
        elif form < 0.5:
            self._scalar(roots, options)
        elif form < 0.6:
            self._call(f"{self.choose(self.scalars or roots)}.backward({options[2:]})")
        else:
            self._with_inputs(listed, ones, options, creates)
        if self.chance(0.3 if creates else 0.05):
            leaf = self.choose(self.leaves)
            self.assign(f"({leaf} if {leaf}.grad is None else {leaf}.grad) * {self.pick()}")

    def _options(self) -> str:
        q = self.random.random()
        if self.chance(0.12):
            return ", create_graph=True" + (
                ", retain_graph=True" if q < 0.35 else ", retain_graph=False" if q < 0.5 else ""
            )
        return ", retain_graph=True" if q < 0.35 else ""

    def _call(self, statement: str) -> None:
        self.lines.append(f"in_thread(lambda: {statement})" if self.chance(0.04) else statement)

    def _scalar(self, roots: list[str], options: str) -> None:
        name = self.new()
        made = self.choose([f"{roots[0]}.sum()", f"({roots[0]} * {roots[-1]}).mean()", f"{roots[0]}.pow(2).sum()"])
        self.lines.append(f"{name} = {made}")
        self.scalars.append(name)
        for _ in range(2 if self.chance(0.35) else 1):
            self._call(f"{name}.backward({options[2:]})")

    def _with_inputs(self, listed: str, ones: str, options: str, creates: bool) -> None:
        inputs = [
            self.choose(self.leaves)
            if not self.tensors or self.chance(0.6)
            else self.choose([*self.tensors, "x0"] if self.chance(0.3) else self.tensors)
            for _ in range(self.choose([1, 1, 2, 3]))
        ]
        if self.chance(0.35):
            self._call(f"torch.autograd.backward([{listed}], {ones}, inputs=[{', '.join(inputs)}]{options})")
            return
        options += ", allow_unused=True" if self.chance(0.7) else ""
        name = self.new()
        self.lines.append(f"{name} = []")
        self.lines.append(f"{name} = defined(torch.autograd.grad([{listed}], [{', '.join(inputs)}], {ones}{options}))")
        if self.chance(0.9 if creates else 0.3):
            self.assign(f"({name} + [{self.pick()}])[0] * {self.pick()}")
