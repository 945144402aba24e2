"""Questions about the text of the user's cells, and edits of it. Nothing is run."""
