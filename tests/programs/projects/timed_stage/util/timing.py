import functools
import time

import torch

times = {}


def timed(function):
    """Measure a stage without the cost of a graph."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        begin = time.perf_counter()
        with torch.no_grad():
            out = function(*args, **kwargs)
        times[function.__name__] = time.perf_counter() - begin
        return out

    return wrapper
