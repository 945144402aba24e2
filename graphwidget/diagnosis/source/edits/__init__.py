"""Edits of a program's text: how they are made, applied, joined, and shown to a person."""
