"""What steps show: gradients that nothing clears, steps that change nothing, lines in the wrong order."""
