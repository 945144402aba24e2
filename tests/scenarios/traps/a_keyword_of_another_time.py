# verified: today_s_name
# says: `retain_variables`, which Tensor.backward does not have. Its name is `retain_graph` | What the graph has saved is kept
# %%
import torch
w = torch.ones(3, requires_grad=True)
features = w.exp()
first = features.sum()
# %%
first.backward(
    retain_variables=True,  # both losses need it
)
features.prod().backward()
