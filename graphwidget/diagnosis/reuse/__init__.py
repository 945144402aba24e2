"""The facts of a second backward: what an earlier call had freed, and how a later one came to it."""
