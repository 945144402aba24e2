"""Gradients that PyTorch refuses: assigned, sparse, of the wrong kind, not a number, or without a formula."""
