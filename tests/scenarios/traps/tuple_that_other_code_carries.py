# verified:
# says: in the code that `Loop().run(m, 3)` calls
# %%
import torch
from torch import nn
torch.manual_seed(0)
code = """
class Loop:
    def run(self, m, n):
        self.state = None
        for i in range(n):
            loss, self.state = m.step(self.state)
            loss.backward()
"""
exec(compile(code, "frame.py", "exec"))
class M:
    def __init__(self):
        self.net = nn.LSTM(4, 8)
    def step(self, state):
        out, state = self.net(torch.randn(3, 2, 4), state)
        return out.pow(2).mean(), state
# %%
m = M()
Loop().run(m, 3)
