"""Turns live torch objects into plain data. The only package that uses torch's internals."""
