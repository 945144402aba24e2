# verified: recompute_in_loop
# says: drop the test `w not in cache`
# %%
import torch
cache = {}
def penalty(w):
    if w not in cache:
        cache[w] = (w ** 2).sum()
    return cache[w]
def main():
    w = torch.ones(3, requires_grad=True)
    for _ in range(2):
        loss = (w * 2).sum() + penalty(w)
        loss.backward()
# %%
main()
