"""Findings (what went wrong, and why) and fixes, computed from records alone."""
