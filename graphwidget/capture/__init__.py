"""Live torch objects to plain data. The only room that touches torch's internals."""
