"""Run a notebook or a script from outside, and explain what it did."""
