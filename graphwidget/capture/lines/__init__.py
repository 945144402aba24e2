"""Which cell, line, iteration and module call made a node."""
