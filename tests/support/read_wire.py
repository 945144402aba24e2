"""The other half of `render/wire.py` for tests: what the front end does with its messages."""

from __future__ import annotations

import json
from itertools import accumulate

BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
# Columns whose numbers count from the one before.
COLUMNS = (
    "uid name seq place iteration module modulePath moduleClass moduleCall edgeEnd edgeTo "
    "slotEnd slotName slotType slotBytes slotStorage storageBytes"
).split()


def numbers(text: str) -> list[int]:
    """What a text of base 64 characters says, before differences are added up."""
    found, value, shift = [], 0, 0
    for digit in map(BASE64.index, text):
        value |= digit % 32 << shift
        shift += 5
        if digit < 32:
            found.append(~(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    assert shift == 0, "the last number breaks off"
    return found


def decode(text: str) -> dict:
    """What the front end does with a full message, for columns and texts."""
    m = json.loads(text)
    s = [*m["strings"], None]  # -1: none
    for key in COLUMNS:
        m[key] = list(accumulate(numbers(m[key])))
    for key in ("name", "slotName", "slotType", "modulePath", "moduleClass"):
        m[key] = [s[i] for i in m[key]]
    ends = [0, *m["edgeEnd"]]
    assert ends[-1] == len(m["edgeTo"])
    m["edges"] = [[i, m["edgeTo"][e]] for i in range(m["n"]) for e in range(ends[i], ends[i + 1])]
    m["freedBy"] = who_freed(m)
    for key in ("kind", "ghost", "slotState"):
        m[key] = small(m[key])
    m["s"] = s
    return m


def with_delta(text: str, delta: str) -> dict:
    """What the front end does with a delta, before it decodes columns."""
    m, d = json.loads(text), json.loads(delta)
    assert d["base"] == m["serial"]
    m["strings"] += d.pop("strings")
    states = list(m["slotState"])
    for was, now, which in d.pop("slotState"):
        among = iter([slot for slot, state in enumerate(m["slotState"]) if small(state) == str(was)])
        for number in numbers(which):
            for _ in range(number):
                next(among)
            for _ in range(max(1, -number)):
                states[next(among)] = BASE64[2 * now]
    m |= d | {"slotState": "".join(states)}
    del m["base"]
    return m


def small(text: str) -> str:
    """Small numbers that are no differences, as digits."""
    return "".join(map(str, numbers(text)))


def who_freed(m: dict) -> dict[int, int]:
    """Slot -> call, from calls and how many freed slots in a row each freed."""
    calls, counts = (accumulate(numbers(m[key])) for key in ("freedBy", "freedCount"))
    by = [call for call, count in zip(calls, counts, strict=True) for _ in range(count)]
    return dict(zip((slot for slot, state in enumerate(small(m["slotState"])) if state == "1"), by, strict=True))
