# verified:
# says: 
# never says: retain_graph
# %%
import torch
class Trainer:
    def backward(self, loss):
        loss.backward()
trainer = Trainer()
w = torch.ones(3, requires_grad=True)
# %%
trainer.backward(w.sum(), retain_variables=True)
