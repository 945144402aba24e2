# title: Features of an embedding are cached in a dict with integer keys
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
emb = torch.nn.Embedding(10, 4)
head = torch.nn.Linear(4, 2)
features = {}

def feature(i):
    if i not in features:
        features[i] = emb(torch.tensor(i)).tanh()
    return features[i]

opt = torch.optim.SGD([*emb.parameters(), *head.parameters()], lr=0.1)
# %%
for i in [1, 2, 3, 1]:
    loss = head(feature(i)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
