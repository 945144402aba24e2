"""Errors of Python code of the user's own that a backward runs: hooks, and backwards of custom Functions."""
