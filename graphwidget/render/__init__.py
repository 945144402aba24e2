"""Pure functions from snapshots to output: wire, text, graph formats, pictures."""
