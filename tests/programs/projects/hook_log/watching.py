"""Outputs of layers, to look at after the run."""

SEEN = []


def watch(module, _inputs, output):
    SEEN.append(output)


def summary():
    return [float(one.abs().mean()) for one in SEEN]
