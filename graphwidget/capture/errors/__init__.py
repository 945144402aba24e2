"""The surroundings of an error, measured where it was raised, as plain data."""
