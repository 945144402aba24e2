def penalized(out, target, penalty):
    return (out - target).square().mean() + penalty
