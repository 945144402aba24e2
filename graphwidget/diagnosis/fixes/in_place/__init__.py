"""Fixes for writes in place to what a backward needs."""
