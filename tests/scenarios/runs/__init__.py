"""Ways to run a program: in plain torch, with hooks on its calls, explained in a fork, with a fix applied."""
