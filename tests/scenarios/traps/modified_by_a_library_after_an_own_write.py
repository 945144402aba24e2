# verified:
# says: `h` was modified in place after MulBackward0 had saved it. By which line is unknown.
# never says: `h.add_(1)` | h = h.add(1)
# %%
import torch, types
library = types.ModuleType("library")
text = "kept = []\ndef take(t):\n    kept.append(t)\ndef bump():\n    kept[0].add_(1)\n"
exec(compile(text, "/usr/lib/library.py", "exec"), library.__dict__)
x = torch.randn(3, requires_grad=True)
# %%
h = x * 2
h.add_(1)
library.take(h)
y = h.exp()
z = (h * y).sum()
library.bump()
z.backward()
