"""Calls that are like an earlier one, and are only counted: which they are, and what such a call costs."""
