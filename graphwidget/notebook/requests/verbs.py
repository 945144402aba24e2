"""`VERBS`: the requests of the page, and the check of each message.

A message is ``{"id": 17, "verb": "backward", "root": 3, ...}``. Its arguments are data: numbers, truth values, names
from a fixed list and pairs of numbers, each checked here before anything is done with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphwidget.exports.formats import FORMATS

__all__ = ["VERBS", "Refused", "Request", "Verb", "checked", "number_of"]

_MOST = 2**53  # the largest whole number that a page can have
_MOST_PAIRS = 10_000
_REQUIRED = object()


class Refused(Exception):
    """A request that cannot be served; `next` says what to do instead."""

    def __init__(self, message: str, next: str = "") -> None:
        super().__init__(message)
        self.next = next


@dataclass(frozen=True)
class Argument:
    """One argument of a verb: a whole number, true or false, one of `choices`, or a list of pairs of whole numbers."""

    kind: type
    default: Any = _REQUIRED
    choices: Collection[str] = ()

    def fits(self, value: object) -> bool:
        """Whether JSON's `value` is such an argument: true is not a number."""
        if self.kind is int:
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MOST
        if self.kind is list:
            return value is None or (
                isinstance(value, list) and len(value) <= _MOST_PAIRS and all(map(_is_pair, value))
            )
        return isinstance(value, self.kind) and (not self.choices or value in self.choices)

    @property
    def wanted(self) -> str:
        """The allowed values, in words."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        return {int: "a whole number", list: "a list of pairs of whole numbers, or null"}.get(
            self.kind, "true or false"
        )


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_WHOLE.fits, value))


_WHOLE = Argument(int)
_FLAG = Argument(bool, default=False)


@dataclass(frozen=True)
class Verb:
    """A kind of request. `Actions` has a method with this name and `_` in front that serves it.

    `takes_turn`: it runs the user's graph or code, so it waits for a running cell. `long`: it takes long and touches
    nothing of the kernel, so it runs in a thread of its own.
    """

    arguments: Mapping[str, Argument] = field(default_factory=dict)
    takes_turn: bool = False
    long: bool = False


VERBS: dict[str, Verb] = {
    "ping": Verb(),
    "backward": Verb(
        {"root": _WHOLE, "retain_graph": _FLAG, "keep_grad": _FLAG, "confirmed": Argument(int, default=0)},
        takes_turn=True,
    ),
    "predict": Verb(
        {
            "root": _WHOLE,
            "retain_graph": _FLAG,
            "keep_grad": _FLAG,
            "fails": Argument(str, choices=("yes", "no")),
            "fails_at": Argument(int, default=-1),
            "frees": Argument(list, default=None),
        },
        takes_turn=True,
    ),
    "forecast": Verb({"root": _WHOLE}),
    "rebuild": Verb({"root": _WHOLE}, takes_turn=True),
    "try_fix": Verb({"fix": _WHOLE, "confirmed": Argument(int, default=0)}, long=True),
    "snapshot": Verb({"event": _WHOLE}),
    "steps_ahead": Verb({"root": _WHOLE, "retain_graph": _FLAG}, takes_turn=True),
    "steps_of": Verb({"call": _WHOLE}),
    "more_steps": Verb({"walk": _WHOLE, "at": _WHOLE}),
    "inspect": Verb({"uid": _WHOLE}),
    "keepers": Verb(),
    "compare": Verb({"before": _WHOLE, "after": _WHOLE}),
    "export": Verb(
        {"format": Argument(str, choices=[name for name, form in FORMATS.items() if form.suffix and not form.binary])}
    ),
    "cancel": Verb({"request": _WHOLE}),
}


@dataclass(frozen=True)
class Request:
    """A message that has been checked."""

    id: int
    verb: str
    arguments: dict[str, Any]


def number_of(message: object) -> int | None:
    """The id of a message, under which it is answered; None: it has none."""
    id = message.get("id") if isinstance(message, dict) else None
    return id if isinstance(id, int) and _WHOLE.fits(id) else None


def checked(message: object) -> Request:
    """The message as a request.

    Raises
    ------
    Refused
        If it is none of the `VERBS`, or its arguments are not those of the verb.
    """
    id = number_of(message)
    if id is None or not isinstance(message, dict) or not isinstance(message.get("verb"), str):
        raise Refused("This is not a request of graphwidget's page.", "Reload the page.")
    name = message["verb"]
    verb = VERBS.get(name)
    if verb is None:
        raise Refused(f"There is no action {name[:40]!r}. There are: {', '.join(VERBS)}.", "Reload the page.")
    foreign = sorted(str(key)[:40] for key in message.keys() - verb.arguments.keys() - {"id", "verb"})
    if foreign:
        raise Refused(f"{name} takes no argument {foreign[0]!r}.", "Reload the page.")
    arguments = {key: message.get(key, argument.default) for key, argument in verb.arguments.items()}
    for key, argument in verb.arguments.items():
        if not argument.fits(arguments[key]):
            raise Refused(f"{name}: {key} must be {argument.wanted}.", "Reload the page.")
    return Request(id, name, arguments)
