"""What is wrong: one module for each kind of finding."""
