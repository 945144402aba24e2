"""Jupyter and IPython: the extension, the magics, the widget. Nothing imports this room."""
