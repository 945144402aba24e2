"""A backward call node by node, as sentences: one about to be made, or one that was recorded."""
