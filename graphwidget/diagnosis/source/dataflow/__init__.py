"""Where values go in a text: through names, calls, elements and functions."""
