"""Roots that are leaves, though they were to be computed: what made them so, and what undoes it."""
