"""The programs whose pictures the tests of the page draw: small, seeded, and of many shapes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LECTURE = Path(__file__).with_name("lecture.py")


@dataclass(frozen=True)
class Program:
    """Cells; `live`: also the pictures after each call. `moments`: the only pictures to keep; empty: all."""

    cells: tuple[str, ...]
    live: bool = False
    moments: tuple[str, ...] = ()

    def wanted(self, moment: str) -> bool:
        return not self.moments or moment in self.moments


def lecture() -> Program:
    """A lecture, cell by cell."""
    return Program(tuple(LECTURE.read_text().split("# %%\n")[1:]))


SETUP = "from torch import nn\nimport torch.nn.functional as F\ntorch.manual_seed(0)\n"

PROGRAMS = {
    "mlp_loop": Program(
        (
            SETUP
            + "model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))\n"
            "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "X, target = torch.randn(32, 4), torch.randint(0, 3, (32,))",
            "for step in range(20):\n"
            "    logits = model(X)\n"
            "    loss = F.cross_entropy(logits, target)\n"
            "    opt.zero_grad()\n"
            "    loss.backward()\n"
            "    opt.step()",
            "loss.backward()",
        ),
        live=True,
        moments=("In[2] (1)", "In[2] (2)", "In[2] (10)", "In[2] (20)", "In[2]", "In[3]"),
    ),
    "lstm_hidden": Program(
        (
            SETUP + "rnn, head = nn.LSTM(3, 4), nn.Linear(4, 1)\n"
            "hidden = (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))\n"
            "opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()])",
            "for batch in range(3):\n"
            "    out, hidden = rnn(torch.randn(2, 1, 3), hidden)\n"
            "    loss = head(out[-1]).pow(2).mean()\n"
            "    opt.zero_grad()\n"
            "    loss.backward()\n"
            "    opt.step()",
        ),
    ),
    "vae": Program(
        (
            SETUP
            + "enc, mu_head, logvar_head, dec = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2), nn.Linear(2, 6)\n"
            "x = torch.rand(5, 6)",
            "h = torch.relu(enc(x))\n"
            "mu, logvar = mu_head(h), logvar_head(h)\n"
            "z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)\n"
            "recon = torch.sigmoid(dec(z))\n"
            "bce = F.binary_cross_entropy(recon, x, reduction='sum')\n"
            "kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())",
            "bce.backward()",
            "kl.backward()",
        ),
    ),
    "gan_step_early": Program(
        (
            SETUP + "G, D = nn.Linear(2, 4), nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(), nn.Linear(8, 1))\n"
            "opt_G, opt_D = torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)\n"
            "bce, ones, zeros = nn.BCEWithLogitsLoss(), torch.ones(4, 1), torch.zeros(4, 1)",
            "fake = G(torch.randn(4, 2))\n"
            "score_fake = D(fake)\n"
            "d_loss = bce(D(torch.randn(4, 4)), ones) + bce(score_fake, zeros)\n"
            "g_loss = bce(score_fake, ones)",
            "opt_D.zero_grad()\nd_loss.backward(retain_graph=True)\nopt_D.step()",
            "g_loss.backward()",
        ),
    ),
    "maml": Program(
        (
            SETUP + "w = torch.randn(3, 3, requires_grad=True)\nb = torch.zeros(3, requires_grad=True)\n"
            "xs, ys, xq, yq = torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 3), torch.randn(4, 3)",
            "inner = F.mse_loss(torch.tanh(F.linear(xs, w, b)), ys)\n"
            "gw, gb = torch.autograd.grad(inner, [w, b], create_graph=True)\n"
            "fast_w, fast_b = w - 0.1 * gw, b - 0.1 * gb\n"
            "outer = F.mse_loss(torch.tanh(F.linear(xq, fast_w, fast_b)), yq)",
            "outer.backward()",
        ),
    ),
    "two_losses": Program(
        (
            SETUP + "trunk, head1, head2 = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 3)\n"
            "x, t1, t2 = torch.randn(6, 4), torch.randn(6, 1), torch.randint(0, 3, (6,))",
            "z = torch.relu(trunk(x))\nloss1 = F.mse_loss(head1(z), t1)\nloss2 = F.cross_entropy(head2(z), t2)",
            "loss1.backward()",
            "loss2.backward()",
        ),
    ),
    "transformer": Program(
        (
            SETUP + "layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)\n"
            "enc = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)\n"
            "emb, head = nn.Embedding(20, 16), nn.Linear(16, 20)\ntok = torch.randint(0, 20, (2, 7))",
            "loss = F.cross_entropy(head(enc(emb(tok))).flatten(0, 1), tok.flatten())",
            "loss.backward()",
        ),
    ),
    "leak": Program(
        (
            SETUP + "net = nn.Linear(8, 1)\nopt = torch.optim.SGD(net.parameters(), 0.1)\nlosses, total = [], 0",
            "for i in range(8):\n"
            "    loss = net(torch.randn(64, 8)).pow(2).mean()\n"
            "    opt.zero_grad()\n"
            "    loss.backward()\n"
            "    opt.step()\n"
            "    total = total + loss\n"
            "    losses.append(loss)",
        ),
    ),
    "inplace": Program(
        (
            SETUP + "lin = nn.Linear(3, 3)\nx = torch.randn(2, 3)",
            "h = torch.exp(lin(x))\ns = torch.sigmoid(h)\nloss = (s * h).sum()",
            "h += 1",
            "loss.backward()",
        ),
    ),
    "step_before_second": Program(
        (
            SETUP + "model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))\n"
            "opt = torch.optim.SGD(model.parameters(), lr=0.1)",
            "out = model(torch.randn(5, 3))\nloss_a = out.pow(2).mean()\nloss_b = out.abs().mean()",
            "loss_a.backward(retain_graph=True)\nopt.step()",
            "loss_b.backward()",
        ),
    ),
    "four_roots": Program(
        (
            SETUP + "body = nn.Linear(4, 4)\nx = torch.randn(3, 4)",
            "z = body(x).tanh()\na = z.sum()\nb = z.pow(2).sum()\nc = z.exp().mean()\nd = (z * z.detach()).mean()",
            "a.backward(retain_graph=True)",
            "c.backward()",
            "b.backward()",
        ),
    ),
    "cnn": Program(
        (
            SETUP + "net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),"
            " nn.Flatten(), nn.Linear(4 * 13 * 13, 10))\n"
            "images, labels = torch.randn(8, 1, 28, 28), torch.randint(0, 10, (8,))",
            "loss = F.cross_entropy(net(images), labels)",
            "loss.backward()",
        ),
    ),
    "temp_list": Program(
        (
            SETUP
            + "inputs, goal = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0])\n"
            + "fc1, fc2 = nn.Linear(3, 5), nn.Linear(5, 1)",
            "temp = []\nfor i in range(3):\n    h = fc1(inputs)\n    out = fc2(h)\n    temp.append(h)\n"
            "    if i != 0:\n        out = out + temp[0].mean()\n    loss = F.mse_loss(out, goal)\n    loss.backward()",
        ),
    ),
    "without_graph": Program(
        (SETUP + "w = torch.randn(3)", "y = (w * 2).sum()", "y.backward()"),
    ),
    "rerun": Program(
        (
            SETUP + "w = torch.randn(4, requires_grad=True)\nk = torch.randn(4)",
            "loss = (w * k).exp().sum()\nloss.backward()",
            "loss = (w * k).exp().sum()\nloss.backward()",
            "print(loss.item())",
            "plain = k * 2",
            "other = (w ** 3).sum()",
            "loss.backward()",
        ),
    ),
}
# Of other shapes: what the pictures were not made for.
PROGRAMS |= {
    "grow": Program(
        (
            SETUP + "net = nn.Linear(4, 4)\nx = torch.randn(2, 4)",
            "h = net(x)\nparts = {}",
            "parts['a'] = h.sum()",
            "parts['b'] = (h * h).mean()",
            "parts['c'] = net(h.tanh()).sum()",
            "parts['d'] = (h.exp() + parts['b']).mean()",
            "parts['d'].backward()",
            "parts['c'].backward()",
        ),
    ),
    "gradient_penalty": Program(
        (
            SETUP + "D = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))\n"
            "real, fake = torch.randn(4, 3), torch.randn(4, 3)",
            "mix = (0.3 * real + 0.7 * fake).requires_grad_()\nscore = D(mix)\n"
            "slope, = torch.autograd.grad(score.sum(), mix, create_graph=True)\n"
            "penalty = ((slope.norm(dim=1) - 1) ** 2).mean()\n"
            "loss = D(fake).mean() - D(real).mean() + 10 * penalty",
            "loss.backward()",
            "penalty.backward()",
        ),
    ),
    "many_heads": Program(
        (
            SETUP + "trunk = nn.Linear(3, 8)\nheads = nn.ModuleList(nn.Linear(8, 1) for _ in range(6))\n"
            "x = torch.randn(4, 3)",
            "shared = torch.relu(trunk(x))\nlosses = [head(shared).pow(2).mean() for head in heads]",
            "losses[4].backward()",
            "losses[1].backward()",
        ),
    ),
    "hand_rnn": Program(
        (
            SETUP + "w, u = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3, requires_grad=True)\n"
            "h, xs = torch.zeros(1, 3), torch.randn(12, 1, 3)",
            "for t in range(4):\n    h = torch.tanh(xs[t] @ w + h @ u)\n    loss_of_step = h.pow(2).sum()\n"
            "    loss_of_step.backward()",
        ),
    ),
    "actor_critic": Program(
        (
            SETUP + "body, actor, critic = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)\n"
            "opt = torch.optim.Adam([*body.parameters(), *actor.parameters(), *critic.parameters()])\n"
            "state, reward = torch.randn(5, 4), torch.randn(5)",
            "features = torch.relu(body(state))\npolicy = torch.log_softmax(actor(features), -1)\n"
            "value = critic(features).squeeze(-1)\nadvantage = reward - value\n"
            "actor_loss = -(policy[:, 0] * advantage).mean()\ncritic_loss = advantage.pow(2).mean()",
            "critic_loss.backward()\nopt.step()",
            "actor_loss.backward()",
        ),
    ),
}
# Where there is little room: graphs that share nothing, wide repeats under two roots, long names.
PROGRAMS |= {
    "gan_three_nets": Program(
        (
            SETUP + "G = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))\n"
            "D, E = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1)), nn.Linear(4, 2)\n"
            "opt_G, opt_D = torch.optim.Adam([*G.parameters(), *E.parameters()]), torch.optim.Adam(D.parameters())\n"
            "bce, real, one, zero = nn.BCEWithLogitsLoss(), torch.randn(4, 4), torch.ones(4, 1), torch.zeros(4, 1)",
            "for epoch in range(3):\n"
            "    z = torch.randn(4, 2)\n"
            "    fake = G(z)\n"
            "    d_loss = bce(D(real), one) + bce(D(fake.detach()), zero)\n"
            "    opt_D.zero_grad()\n    d_loss.backward()\n    opt_D.step()\n"
            "    g_loss, code_loss = bce(D(fake), one), F.mse_loss(E(fake), z)\n"
            "    opt_G.zero_grad()\n    (g_loss + code_loss).backward()\n    opt_G.step()",
        ),
    ),
    "concatenated": Program(
        (
            SETUP + "parts = [torch.randn(2, 3, requires_grad=True) for _ in range(10)]",
            "cat = torch.cat([p.exp() for p in parts], 1)\nst = torch.stack([p.sin() for p in parts])\n"
            "loss = cat.sum() + st.prod()",
            "loss.backward()",
            "cat.sum().backward()",
        ),
    ),
    "long_names": Program(
        (
            SETUP + "the_weight_matrix_of_the_first_projection = torch.randn(3, 3, requires_grad=True)",
            "activation_of_the_hidden_representation_before_dropout = torch.sigmoid("
            "torch.randn(4, 3) @ the_weight_matrix_of_the_first_projection)\n"
            "reconstruction_loss_weighted_by_inverse_class_frequency = "
            "(activation_of_the_hidden_representation_before_dropout ** 2).mean()\n"
            "regularisation_term_with_a_very_long_name_indeed = "
            "activation_of_the_hidden_representation_before_dropout.exp().sum()",
            "reconstruction_loss_weighted_by_inverse_class_frequency.backward()",
            "regularisation_term_with_a_very_long_name_indeed.backward()",
        ),
    ),
}
PROGRAMS["lecture"] = lecture()
