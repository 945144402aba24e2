"""Lines of a training loop that miss the gradients: too early, scaled, over a generator that is used up, not called."""
