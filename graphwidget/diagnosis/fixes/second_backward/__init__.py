"""Fixes for a call that reached what an earlier call had freed: one file a fix, each with a function `propose`."""
