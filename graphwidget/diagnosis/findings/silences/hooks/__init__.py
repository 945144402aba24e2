"""Backward hooks that never ran."""
