"""Which line, and which optimizer step, modified what in place."""
