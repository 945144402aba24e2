"""More of the differential fuzz, on demand: ``python -m tests.fuzz.run FIRST N [--show 12] [--untracked]``."""

from __future__ import annotations

import argparse
import sys
import time

import torch

from tests.fuzz.judge import Judge
from tests.fuzz.programs import source


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int, help="seed of the first program")
    parser.add_argument("n", type=int, help="how many programs")
    parser.add_argument("--show", type=int, default=12, help="mistakes to print")
    parser.add_argument("--untracked", action="store_true", help="nobody has taken notes meanwhile")
    parser.add_argument("--source", action="store_true", help="print program FIRST instead of running any")
    given = parser.parse_args()
    if given.source:
        print(source(given.first))
        return 0
    torch.set_num_threads(1)
    judge, begin = Judge(tracked=not given.untracked), time.perf_counter()
    for seed in range(given.first, given.first + given.n):
        judge.run(seed)
    print(*judge.mistakes[: given.show], sep="\n")
    print(judge.report())
    outcomes = {key.partition(" ")[2]: n for key, n in sorted(judge.counts.items()) if key.startswith("outcome")}
    print(f"{time.perf_counter() - begin:.1f} s; outcomes: {outcomes}")
    return 1 if judge.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
