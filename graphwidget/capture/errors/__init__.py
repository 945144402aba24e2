"""What stood where an error was raised, measured then and there as plain data."""
