# title: References of plain Python: del removes a name, not the tensor
# kind: ok
# source: seed 004 (https://discuss.pytorch.org/t/which-is-freed-which-is-not/8636)
# truth: measured.json
# %%
import torch, weakref
t = torch.rand(10)
ref = weakref.ref(t)
box = [t]
# %%
del t
alive_in_box = ref() is not None
# %%
t = box[0]
del box
alive_in_name = ref() is not None
