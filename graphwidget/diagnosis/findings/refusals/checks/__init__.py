"""Checks of PyTorch's that a sentence explains: the texts in `texts`, and how a finding is made of one in `checks`."""
