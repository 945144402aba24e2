"""Python code inside the graph (Functions, hooks): read from its source, never run."""
