"""Leaves that a program makes anew, and values that lead to none."""
