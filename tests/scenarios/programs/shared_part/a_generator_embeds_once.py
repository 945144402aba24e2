# title: A generator embeds the whole text once
# kind: second_backward
# truth: measured.json
# %%
import torch
torch.manual_seed(0)
emb = torch.nn.Embedding(10, 4)
lin = torch.nn.Linear(4, 10)
params = list(emb.parameters()) + list(lin.parameters())
opt = torch.optim.SGD(params, lr=0.1)
text = torch.randint(0, 10, (21,))

def batches(n):
    vectors = torch.tanh(emb(text))
    for i in range(0, 20, n):
        yield vectors[i:i + n], text[i + 1:i + 1 + n]
# %%
for inputs, labels in batches(5):
    loss = torch.nn.functional.cross_entropy(lin(inputs), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
