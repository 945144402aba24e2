"""Records of in-place writes: the line or the optimizer step, and the tensors that it modified."""
