"""Measure the scenarios again in plain torch, and compare the results with the recorded ones.

    python tests/scenarios/measure.py [NAME ...]

Each program runs in two forks: plainly (its errors, and the expressions that must hold at its end), and with hooks on
the nodes of every call (the calls, the failed node, the freeing call). A corrected version must run without error.
Exit status: 0 if everything agrees, 1 otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import truths
from runs import engine_calls, plain

CALL = (
    "cell",
    "line",
    "api",
    "retain_graph",
    "create_graph",
    "roots",
    "root_vars",
    "result",
    "failed_node",
    "freed_by",
)


def differences(scenario: truths.Scenario) -> Iterator[str]:
    """Yield each difference, in words."""
    name, path, truth = scenario.name, str(scenario.path), scenario.truth
    measured = plain.child(plain.outcome, name, path, truth["expect"])
    yield from _differences_of_a_run(measured, truth["errors"], "")
    if truth["instrument"]:
        measured = plain.child(engine_calls.calls, name, path)
        if "harness_error" in measured:
            yield measured["harness_error"][-300:]
        else:
            wanted, got = (
                [{k: c[k] for k in CALL if k in c} for c in calls]
                for calls in (truth["backward_calls"], measured["calls"])
            )
            yield from (f"call {n}: {a} measured {b}" for n, (a, b) in enumerate(zip(wanted, got)) if a != b)
            if len(wanted) != len(got):
                yield f"{len(wanted)} calls written, {len(got)} measured"
            if measured["errors"] != truth["errors"]:
                yield f"errors with hooks: {measured['errors']}"
    if inplace := truth.get("inplace"):
        writes = plain.child(engine_calls.last_writes, name, path, inplace["tensor"].split("|"))
        if not writes or any(at != inplace["changed_at"] for at in writes.values()):
            yield f"modified at {inplace['changed_at']}, measured {writes}"
    if scenario.corrected:
        measured = plain.child(plain.outcome, f"{name}.fixed", str(scenario.corrected), truth["expect_fixed"])
        yield from _differences_of_a_run(measured, [], "corrected: ")


def _differences_of_a_run(measured: dict, errors: list, which: str) -> Iterator[str]:
    if "harness_error" in measured:
        yield which + measured["harness_error"][-300:]
        return
    if measured["errors"] != errors:
        yield f"{which}errors: {measured['errors']}"
    yield from (f"{which}{check}: {why}" for check, why in measured["failed"].items())


def main(names: list[str]) -> int:
    scenarios = truths.scenarios()
    plain.preload()
    wrong = 0
    for name in names or scenarios:
        notes = list(differences(scenarios[name]))
        wrong += bool(notes)
        for note in notes:
            print(f"{scenarios[name].theme}/{name}: {note}")
    count = len(names or scenarios)
    print(f"{count} scenarios measured, {count - wrong} as written, {wrong} not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
