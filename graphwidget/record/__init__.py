"""The record of a run in a file (.gwz): written while the program runs, and read without it. Its form: FORMAT.md."""
