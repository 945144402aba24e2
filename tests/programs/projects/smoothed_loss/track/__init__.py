"""Training with a smoothed loss."""
