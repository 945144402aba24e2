"""Fixes for a call that reached what an earlier call had freed: one file for each fix, with a function `propose`."""
