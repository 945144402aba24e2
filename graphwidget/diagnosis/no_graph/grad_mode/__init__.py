"""Where gradients were off: a mode that a line switched, inference mode around a call, code that is not recorded."""
