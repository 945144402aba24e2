"""Parameters that have come in the place of those an optimizer holds: it steps the old ones, and the new ones stay.

A layer of a model is replaced after the optimizer was made. The optimizer then holds parameters that nothing else
refers to and that get no gradient, and a module that runs has parameters with gradients that no optimizer steps.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from graphwidget import torch_internals as internals
from graphwidget.capture.writes.watched import WatchedTensors
from graphwidget.model import Place, ReplacedParameters

__all__ = ["Replaced"]

MAX_PARAMETERS = 5_000  # of an optimizer and of modules that are compared
MAX_SUSPECTS = 200  # parameters whose referrers are looked at
MAX_FOUND = 20


class Replaced:
    """Compares optimizers with the modules that ran, at steps 2, 4, 8, ... of each.

    Parameters
    ----------
    watched
        Knows the names of tensors.
    parameters
        Returns the parameters of the modules that were called, each with its name or None.
    """

    def __init__(
        self, watched: WatchedTensors, parameters: Callable[[], Iterable[tuple[str | None, Any]]] = tuple
    ) -> None:
        self.watched, self.parameters = watched, parameters
        self.found: list[ReplacedParameters] = []

    def compare(
        self, held: Sequence[Any], steps: int, where: Callable[[], Place | None], by_others: Callable[[], Collection[int]]
    ) -> None:
        """Compare what an optimizer holds, in one of its steps, with what modules have.

        Parameters
        ----------
        held, steps
            Its parameters, and how many steps it has made.
        where
            Returns where it steps.
        by_others
            Returns the `id`s of the parameters that other optimizers hold.
        """
        if steps & (steps - 1) or steps < 2 or len(held) > MAX_PARAMETERS or len(self.found) >= MAX_FOUND:
            return
        idle = [one for one in held if internals.requires_grad(one) and internals.grad(one) is None]
        if not idle:
            return
        known = list(zip(range(MAX_PARAMETERS), self.parameters()))
        if len(known) == MAX_PARAMETERS:
            return  # not all are known
        of_modules = {id(one) for _, (_, one) in known}
        old = [one for one in idle if id(one) not in of_modules and self._name(one) is None]
        if not old or len(old) > MAX_SUSPECTS:
            return
        stepped = {id(one) for one in held} | set(by_others())
        new = {
            id(one): (name, one)
            for _, (name, one) in known
            if id(one) not in stepped and internals.requires_grad(one) and internals.grad(one) is not None
        }
        if new and not _held_elsewhere(old):
            names = tuple(dict.fromkeys(name for given, one in new.values() if (name := self._name(one) or given)))
            place = where()
            if names and place is not None and all(names != one.paths for one in self.found):
                self.found.append(ReplacedParameters(place, names, len(old), len(held)))

    def _name(self, tensor: Any) -> str | None:
        """The user's own name of a tensor, other than through an optimizer."""
        at = self.watched.position(tensor)
        path = self.watched.paths[at] if at is not None else ""
        return path if path and ".param_groups[" not in path else None


def _held_elsewhere(tensors: list[Any]) -> bool:
    """Whether something refers to one of these, other than the lists of an optimizer and its state."""
    ours = (id(tensors),)
    for one in gc.get_referrers(*tensors):
        if id(one) in ours or type(one).__module__.startswith("torch.optim"):
            continue
        if type(one) is list and all(internals.is_tensor(element) for element in one):
            continue  # `params` of a group
        if type(one) is dict and all(internals.is_tensor(key) for key in one):
            continue  # its state
        if hasattr(type(one), "f_lineno"):
            continue  # a frame: ours, and the step's own
        return True
    return False
