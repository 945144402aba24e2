# verified: detach recompute_in_loop
# says: Then `teacher` gets no gradient
# %%
import torch
torch.manual_seed(0)
teacher = torch.randn(4, 2, requires_grad=True)
student = torch.zeros(4, 2, requires_grad=True)
opt = torch.optim.SGD([student], lr=0.1)
X = torch.randn(16, 4)
Y = (X @ teacher).tanh()
# %%
for i in range(0, 16, 4):
    loss = ((X[i:i + 4] @ student).tanh() - Y[i:i + 4]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
