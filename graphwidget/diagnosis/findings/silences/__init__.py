"""Mistakes of a training loop that raise nothing, each known from what was seen at the optimizers' steps."""
