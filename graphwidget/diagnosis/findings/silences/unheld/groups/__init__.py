"""Parameters that a program sorts or collects for the groups of an optimizer, and that get into none."""
