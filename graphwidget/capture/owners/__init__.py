"""Which Python names keep which tensor, and so which graph, alive."""
