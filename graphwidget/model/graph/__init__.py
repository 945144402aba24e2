"""The autograd graph at one moment: columns, views on them, exports, and what changed between two."""
