"""Passes of loops: which one made a node, and in which loop two calls differ."""
