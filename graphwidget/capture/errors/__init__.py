"""The state of the program at an error, measured when it was raised, as plain data."""
