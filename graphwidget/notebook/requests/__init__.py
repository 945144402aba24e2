"""What the page may ask: the verbs, the roots that it may name, whose turn it is, and the answers."""
