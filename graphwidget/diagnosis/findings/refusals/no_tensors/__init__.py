"""`loss.backward()` where `loss` is no tensor: a number, None, several things, or what was not called."""
