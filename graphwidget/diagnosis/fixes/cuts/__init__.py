"""Where a graph can be cut between two calls that share a part of it."""
