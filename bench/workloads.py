"""Measure the cost of tracking for small real loops: CPU time in fresh processes, off and on in turns.

    python bench/workloads.py [--repeat 5] [--only gan lecture] [--steps 300] [--json]

Every process runs the cells of one workload in an IPython shell, with or without the extension. The figure is the ratio
on / off of the CPU time of a step, after twenty steps of warm-up: the median over neighbouring processes. Each workload
runs in three forms: as a loop in a cell, as functions that a cell calls, and as a module that a cell imports.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

BENCH = Path(__file__).resolve().parent
WARM_UP = 20
GOAL = 1.3 if sys.version_info < (3, 12) else 1.15

START = """
import time
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

MLP = """
net = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
x, y = torch.randn(32, 16), torch.randn(32, 1)
"""
MLP_STEP = """
loss = F.mse_loss(net(x), y)
opt.zero_grad()
loss.backward()
opt.step()
"""
CNN = """
class Block(nn.Module):
    def __init__(self, inside, outside):
        super().__init__()
        self.a = nn.Conv2d(inside, outside, 3, padding=1)
        self.bn = nn.BatchNorm2d(outside)
        self.b = nn.Conv2d(outside, outside, 3, padding=1)
        self.skip = nn.Conv2d(inside, outside, 1)
    def forward(self, x):
        h = F.relu(self.bn(self.a(x)))
        h = self.b(h)
        return F.relu(h + self.skip(x))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Block(1, 8), Block(8, 16)
        self.head = nn.Linear(16, 10)
    def forward(self, x):
        x = F.max_pool2d(self.one(x), 2)
        x = self.two(x)
        return self.head(x.mean((2, 3)))
net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
images, labels = torch.randn(8, 1, 16, 16), torch.randint(10, (8,))
"""
CNN_STEP = """
opt.zero_grad()
out = net(images)
loss = F.cross_entropy(out, labels)
loss.backward()
opt.step()
total = loss.item()
"""
GRU = """
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 24)
        self.gru = nn.GRU(24, 32, batch_first=True)
        self.head = nn.Linear(32, 50)
    def forward(self, x, h=None):
        e = self.emb(x)
        out, h = self.gru(e, h)
        return self.head(out), h
net = LM()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
text = torch.randint(50, (8, 21))
hidden = None
"""
GRU_STEP = """
x, y = text[:, :-1], text[:, 1:]
logits, h = net(x, None)
h = h.detach()
loss = F.cross_entropy(logits.reshape(-1, 50), y.reshape(-1))
opt.zero_grad()
loss.backward()
nn.utils.clip_grad_norm_(net.parameters(), 1.0)
opt.step()
"""
GPT = """
class Head(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(32, size, bias=False) for _ in range(3))
        self.register_buffer("tril", torch.tril(torch.ones(16, 16)))
    def forward(self, x):
        B, T, C = x.shape
        k = self.key(x)
        q = self.query(x)
        wei = q @ k.transpose(-2, -1) * C**-0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        return wei @ self.value(x)
class MultiHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([Head(8) for _ in range(4)])
        self.proj = nn.Linear(32, 32)
    def forward(self, x):
        out = torch.cat([h(x) for h in self.heads], dim=-1)
        return self.proj(out)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.sa = MultiHead()
        self.ffwd = nn.Sequential(nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 32))
        self.ln1, self.ln2 = nn.LayerNorm(32), nn.LayerNorm(32)
    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        x = x + self.ffwd(self.ln2(x))
        return x
class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(40, 32), nn.Embedding(16, 32)
        self.blocks = nn.Sequential(*[Block() for _ in range(3)])
        self.ln_f, self.lm_head = nn.LayerNorm(32), nn.Linear(32, 40)
    def forward(self, idx, targets):
        B, T = idx.shape
        x = self.tok(idx) + self.pos(torch.arange(T))
        x = self.blocks(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.view(B * T, -1), targets.view(B * T))
model = GPT()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = torch.randint(40, (500,))
def get_batch():
    ix = torch.randint(len(data) - 17, (8,))
    x = torch.stack([data[i:i + 16] for i in ix])
    y = torch.stack([data[i + 1:i + 17] for i in ix])
    return x, y
"""
GPT_STEP = """
xb, yb = get_batch()
logits, loss = model(xb, yb)
opt.zero_grad(set_to_none=True)
loss.backward()
opt.step()
"""
GAN = """
G = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1), nn.Sigmoid())
g_opt, d_opt = torch.optim.Adam(G.parameters(), lr=2e-4), torch.optim.Adam(D.parameters(), lr=2e-4)
criterion = nn.BCELoss()
ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
"""
GAN_STEP = """
real = torch.randn(32, 2) + 3
z = torch.randn(32, 8)
fake = G(z)
D.zero_grad()
d_real = criterion(D(real), ones)
d_fake = criterion(D(fake.detach()), zeros)
d_loss = d_real + d_fake
d_loss.backward()
d_opt.step()
G.zero_grad()
g_loss = criterion(D(fake), ones)
g_loss.backward()
g_opt.step()
"""
SPIKE = """
class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).float()
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / (1 + 10 * x.abs()) ** 2
w1, w2 = (torch.randn(20, 30) * 0.3).requires_grad_(), (torch.randn(30, 5) * 0.3).requires_grad_()
opt = torch.optim.Adam([w1, w2], lr=1e-3)
spikes, target = (torch.rand(25, 16, 20) < 0.3).float(), torch.randint(5, (16,))
"""
SPIKE_STEP = """
mem1, mem2 = torch.zeros(16, 30), torch.zeros(16, 5)
out = 0
for t in range(25):
    mem1 = 0.9 * mem1 + spikes[t] @ w1
    s = Spike.apply(mem1 - 1.0)
    mem1 = mem1 - s.detach()
    mem2 = 0.9 * mem2 + s @ w2
    out = out + mem2
loss = F.cross_entropy(out / 25, target)
opt.zero_grad()
loss.backward()
opt.step()
"""
LECTURE = """
class Linear:
    def __init__(self, fan_in, fan_out):
        self.weight = torch.randn(fan_in, fan_out) / fan_in**0.5
        self.bias = torch.zeros(fan_out)
    def __call__(self, x):
        self.out = x @ self.weight
        self.out = self.out + self.bias
        return self.out
    def parameters(self):
        return [self.weight, self.bias]
class BatchNorm1d:
    def __init__(self, dim, eps=1e-5, momentum=0.1):
        self.eps, self.momentum, self.training = eps, momentum, True
        self.gamma, self.beta = torch.ones(dim), torch.zeros(dim)
        self.running_mean, self.running_var = torch.zeros(dim), torch.ones(dim)
    def __call__(self, x):
        if self.training:
            xmean = x.mean(0, keepdim=True)
            xvar = x.var(0, keepdim=True)
        else:
            xmean = self.running_mean
            xvar = self.running_var
        xhat = (x - xmean) / torch.sqrt(xvar + self.eps)
        self.out = self.gamma * xhat + self.beta
        if self.training:
            with torch.no_grad():
                self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * xmean
                self.running_var = (1 - self.momentum) * self.running_var + self.momentum * xvar
        return self.out
    def parameters(self):
        return [self.gamma, self.beta]
class Tanh:
    def __call__(self, x):
        self.out = torch.tanh(x)
        return self.out
    def parameters(self):
        return []
C = torch.randn(27, 10)
layers = [Linear(30, 50), BatchNorm1d(50), Tanh(), Linear(50, 50), BatchNorm1d(50), Tanh(), Linear(50, 27)]
parameters = [C] + [p for layer in layers for p in layer.parameters()]
for p in parameters:
    p.requires_grad = True
Xtr, Ytr = torch.randint(27, (1000, 3)), torch.randint(27, (1000,))
lossi, ud = [], []
"""
LECTURE_STEP = """
ix = torch.randint(0, Xtr.shape[0], (32,))
Xb, Yb = Xtr[ix], Ytr[ix]
emb = C[Xb]
x = emb.view(emb.shape[0], -1)
for layer in layers:
    x = layer(x)
loss = F.cross_entropy(x, Yb)
for layer in layers:
    layer.out.retain_grad()
for p in parameters:
    p.grad = None
loss.backward()
lr = 0.1
for p in parameters:
    p.data += -lr * p.grad
lossi.append(loss.log10().item())
with torch.no_grad():
    ud.append([((lr * p.grad).std() / p.data.std()).log10().item() for p in parameters])
"""
NORMS = """
def make(norm):
    parts = []
    for i in range(4):
        parts += [nn.Linear(20, 20), *([nn.BatchNorm1d(20)] if norm else []), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(20, 5))
plain, normed = make(False), make(True)
opts = [torch.optim.SGD(net.parameters(), lr=0.05) for net in (plain, normed)]
stats = {}
def hook_for(name):
    def hook(module, args, out):
        stats[name] = (out.mean().item(), out.std().item())
    return hook
for label, net in (("plain", plain), ("normed", normed)):
    for i, layer in enumerate(net):
        if isinstance(layer, nn.Linear):
            layer.register_forward_hook(hook_for(f"{label}.{i}"))
x, y = torch.randn(32, 20), torch.randint(5, (32,))
losses = {"plain": [], "normed": []}
"""
NORMS_STEP = """
for label, net, opt in zip(losses, (plain, normed), opts):
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    losses[label].append(loss.item())
"""

# Cells before the loop, and the statements of a step.
CASES = {
    "mlp-adam": (MLP + "opt = torch.optim.Adam(net.parameters(), lr=1e-3)\n", MLP_STEP),
    "mlp-sgd": (MLP + "opt = torch.optim.SGD(net.parameters(), lr=1e-2)\n", MLP_STEP),
    "cnn": (CNN, CNN_STEP),
    "gru": (GRU, GRU_STEP),
    "gpt": (GPT, GPT_STEP),
    "gan": (GAN, GAN_STEP),
    "spiking": (SPIKE, SPIKE_STEP),
    "lecture": (LECTURE, LECTURE_STEP),
    "norms": (NORMS, NORMS_STEP),
}
FORMS = ("cell", "functions", "module")
MODULE = "bench_workload"


def cells_of(name: str, form: str, steps: int, folder: Path) -> tuple[str, ...]:
    """Return the cells of a workload. The last one stores the CPU seconds of the steps after warm-up in `seconds`.

    `folder`: where a module is written.
    """
    setup, step = CASES[name]
    clock = f"if step == {WARM_UP}: began = time.thread_time()\n"
    if form == "cell":
        loop = f"for step in range({WARM_UP + steps}):\n" + textwrap.indent(clock + step.strip() + "\n", "    ")
        return START, setup, loop + "seconds = time.thread_time() - began\n"
    functions = "def train_step():\n" + textwrap.indent(step.strip() + "\n", "    ") + "    return loss\n"
    functions = functions.replace("return loss", "return g_loss") if name == "gan" else functions
    fit = "def fit(steps):\n    for step in range(steps):\n" + textwrap.indent(clock, 8 * " ")
    fit += "        last = train_step()\n    return time.thread_time() - began\n"
    run = f"seconds = fit({WARM_UP + steps})\n"
    if form == "module":
        (folder / f"{MODULE}.py").write_text(START + setup + functions + fit)
        return f"import sys\nsys.path.insert(0, {str(folder)!r})\nfrom {MODULE} import fit\n", run
    return START, setup, functions + fit, run


def child(name: str, form: str, how: str, steps: int) -> None:
    """Run one workload in this process and print the seconds of a step."""
    sys.path.insert(0, str(BENCH.parent))
    import torch
    from IPython.core.interactiveshell import InteractiveShell
    from overhead import keep_memory
    from traitlets.config import Config

    torch.set_num_threads(1)
    keep_memory()
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    with tempfile.TemporaryDirectory() as folder:
        cells = cells_of(name, form, steps, Path(folder))
        for source in (*(["%load_ext graphwidget"] if how == "on" else []), *cells):
            shell.run_cell(source, store_history=True).raise_error()
    print(json.dumps(shell.user_ns["seconds"] / steps))


def one(name: str, form: str, how: str, steps: int) -> float:
    argv = [sys.executable, str(Path(__file__).resolve()), "--child", name, form, how, "--steps", str(steps)]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=BENCH, timeout=300)
    if done.returncode:
        raise RuntimeError((done.stderr or done.stdout).strip().splitlines()[-1])
    return float(json.loads(done.stdout.strip().splitlines()[-1]))


def measure(name: str, form: str, repeat: int, steps: int) -> tuple[float, float]:
    """Return the median seconds of a step without tracking, and the ratio of a tracked step to that."""
    pairs = [(one(name, form, "off", steps), one(name, form, "on", steps)) for _ in range(repeat)]
    return statistics.median(off for off, _ in pairs), statistics.median(on / off for off, on in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.steps)
        return 0
    found = {}
    for name in options.only:
        for form in FORMS:
            seconds, ratio = found[f"{name}, {form}"] = measure(name, form, options.repeat, options.steps)
            if not options.json:
                print(f"{name:10} {form:10} {1e3 * seconds:7.3f} ms a step, tracked {ratio:5.2f} x", flush=True)
    if options.json:
        print(json.dumps({name: ratio for name, (_, ratio) in found.items()}))
    return int(max(ratio for _, ratio in found.values()) > GOAL)


if __name__ == "__main__":
    sys.exit(main())
