"""What somebody predicts of a backward call: its names, what the call does, and how right it is."""
