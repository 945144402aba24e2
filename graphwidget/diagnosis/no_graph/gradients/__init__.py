"""Gradients without a graph: the call or the `.grad` that they come from, and what is computed from them."""
