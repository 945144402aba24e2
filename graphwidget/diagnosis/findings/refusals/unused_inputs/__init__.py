"""Inputs that a call of `torch.autograd.grad` did not use, and why no path leads to them."""
