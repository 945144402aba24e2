"""Numbers on the way of a loss: taken out of tensors, through NumPy, and the types that they give to tensors."""
