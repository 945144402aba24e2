"""Backward hooks of the program, watched while it runs once more."""
