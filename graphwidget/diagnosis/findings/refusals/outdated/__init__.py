"""What PyTorch took in earlier versions and refuses today: calls by their old names, Functions that are objects."""
