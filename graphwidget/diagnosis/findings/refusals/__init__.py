"""What PyTorch refuses by name: checkpoints, inference tensors, views, inputs that were not used, replicas."""
