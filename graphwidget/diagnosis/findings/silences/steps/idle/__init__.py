"""Steps that change nothing."""
