# title: A replay buffer keeps tensors with a graph beside numbers
# kind: second_backward
# truth: measured.json
# %%
import torch, random
torch.manual_seed(0); random.seed(0)
enc = torch.nn.Linear(3, 2)
opt = torch.optim.Adam(enc.parameters(), 1e-2)
replay = []
# %%
for episode in range(4):
    z = enc(torch.randn(3)).tanh()
    replay.append((z, random.random(), False))
    loss = torch.stack([r * s.sum() for s, r, done in replay]).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
