"""What PyTorch refuses with a message of its own: one module for each kind of refusal."""
