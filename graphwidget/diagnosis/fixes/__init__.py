"""What helps: proposals, and whether each would hold."""
