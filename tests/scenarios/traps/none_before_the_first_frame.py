# verified: detach
# %%
import torch, torch.nn as nn
enc = nn.Sequential(nn.Linear(3, 3), nn.ReLU()); opt = torch.optim.Adam(enc.parameters())
def train(frames):
    last = None
    for f in frames:
        feat = enc(f)
        loss = feat.pow(2).mean()
        if last is not None:
            loss = loss + nn.functional.mse_loss(feat, last)
        opt.zero_grad()
        loss.backward()
        opt.step()
        last = feat
# %%
train(torch.randn(4, 2, 3))
