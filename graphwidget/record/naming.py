"""Names of records: of the program, its rank in a distributed job, and its process."""

from __future__ import annotations

import os
import re
import sys

__all__ = ["SUFFIX", "name_beside", "rank_and_ranks", "stem_of_program"]

SUFFIX = ".gwz"
_ODD = re.compile(r"[^\w.-]+")


def rank_and_ranks() -> tuple[int | None, int]:
    """This process's rank, and how many there are; (None, 0): it is in no distributed job that is known yet."""
    torch = sys.modules.get("torch")
    job = getattr(torch, "distributed", None)
    try:
        if job is not None and job.is_available() and job.is_initialized():
            return job.get_rank(), job.get_world_size()
    except Exception:  # a backend's own
        pass
    rank, ranks = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return (int(rank), int(ranks)) if rank.isdecimal() and ranks.isdecimal() else (None, 0)


def name_beside(place: str, stem: str) -> str:
    """The path of this process's record: in the folder `place`; or beside the record `place`, which gives the stem.

    Raises
    ------
    OSError
        If there is no such folder and none can be made.
    """
    if place.endswith(SUFFIX):
        place, stem = os.path.dirname(place), os.path.basename(place).removesuffix(SUFFIX)
    else:
        os.makedirs(place, exist_ok=True)
    rank, _ = rank_and_ranks()
    of_rank = f"-rank{rank}" if rank is not None else ""
    return os.path.join(place, f"{stem}{of_rank}-{os.getpid()}{SUFFIX}")


def stem_of_program() -> str:
    """The name of the program that runs here, without folder and suffix."""
    main = sys.modules.get("__mp_main__") or sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    name = spec.name.removesuffix(".__main__") if spec is not None else os.path.basename(file or "").rpartition(".")[0]
    return _ODD.sub("_", name)[:60] or "run"
