"""Parameters that an optimizer holds and no step found a gradient for."""

from __future__ import annotations

from dataclasses import dataclass

from graphwidget.model.parts import Place

__all__ = ["StarvedParameters"]


@dataclass(frozen=True, slots=True)
class StarvedParameters:
    """What the steps of one optimizer left unchanged because it had no gradient in any of them.

    `place` is the last step's, `paths` name the parameters, `steps` says how many steps there were, and `held` how many
    parameters the optimizer had when it made the first.
    """

    place: Place
    paths: tuple[str, ...]
    steps: int
    held: int
