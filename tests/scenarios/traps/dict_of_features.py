# verified: retain_graph_earlier_call recompute_in_loop
# says: reaches the same node through `feats['parts'][1]`.
# %%
import torch
def features(t):
    base = (t * 3).exp()
    return {"mean": base.mean(), "parts": [base.sin(), base.cos()]}
t = torch.randn(5, requires_grad=True)
# %%
feats = features(t)
feats["mean"].backward()
# %%
sum(q.sum() for q in feats["parts"]).backward()
