"""Fixes for graphs that pile up: in what keeps them, in the line that adds to them, in cycles."""
