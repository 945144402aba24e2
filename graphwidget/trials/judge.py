"""Whether a program did what it should when it ran with a fix in it: the account of that run against the one before.

No error; the finding is gone, and there is no new one; as many calls and passes as before; what trained still trains;
and the loss is not a constant. A fix that changes what the program means stays a choice, however well it runs.
"""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from graphwidget.diagnosis.fixes import CHOICES
from graphwidget.diagnosis.source.paths import local
from graphwidget.diagnosis.wording import spoken
from graphwidget.model import BackwardCall, Finding, Fix, TextEdit, Trial, bytes_text
from graphwidget.trials.account import Account, Raised
from graphwidget.trials.cut_findings import failed_by_a_cut
from graphwidget.trials.rerun import Edited, Rerun

__all__ = ["hung", "judge"]

_MOST_NAMED = 3
_SAME = 3  # passes in which a loss must have had one value before it is called a constant
# Errors that say something of the machine, or of how a trial is run, and nothing of the fix.
_NO_ROOM = ("OutOfMemoryError", "MemoryError")
_OF_NAMES = ("NameError", "UnboundLocalError", "AttributeError")
_NO_INPUT = ("EOFError", "StdinNotImplementedError")


def judge(
    before: Account,
    after: Account,
    finding: Finding,
    fix: Fix,
    call: BackwardCall | None = None,
    copy: Edited | None = None,
) -> Trial:
    """The verdict on a fix.

    Parameters
    ----------
    before
        Of the program as it is, until it failed.
    after
        Of the program with the fix in it.
    call
        The call that failed, if one did.
    copy
        The program with the fix in it.
    """
    passes, what = _further(before, after, call)
    choice = fix.choice or fix.id in CHOICES or (finding.severity != "error" and _trains_more(before, after))

    def trial(ok: bool | None, why: str) -> Trial:
        return Trial(ok, why, round(after.seconds, 2), passes, choice)

    copy = copy or Edited(Rerun(""))
    new = _new_errors(before, after, finding, call, copy.inserted)
    if new and new[0].type in (*_NO_ROOM, *_NO_INPUT):
        room = "there was not enough memory for it beside the program itself"
        return trial(None, room if new[0].type in _NO_ROOM else "it reads from standard input, and a trial has none")
    if new and 0 < new[0].step < copy.begins:
        return trial(None, f"the program does not run again as it did: before the fix it raised {new[0].text}")
    if new and _is_past(before, after, finding, call, fix, new[0]):
        return replace(trial(False, f"it gets past this error, then the program raised {new[0].text}"), partly=True)
    if new and _is_of_files(new[0]):
        return trial(None, f"the program does not run again as it did: it raised {new[0].text}")
    if new:
        return trial(False, f"raised {new[0].text}")
    if after.ended == "time" and after.ran <= before.ran:
        return hung(before.seconds, after.seconds, choice=choice)
    if elsewhere := _piles_elsewhere(before, after, finding):
        return replace(trial(False, f"nothing piles up there any more, but elsewhere: {elsewhere}"), partly=True)
    for check in (_still_there, _only_in_part, _fewer_calls, _fewer_passes, _starved, _constant):
        wrong = check(before, after, finding, call, fix)
        if wrong:
            return trial(False, wrong)
    if wrong := _new_finding(before, after):
        past = failed_by_a_cut(finding, call) and after.ran > before.ran  # one of several lines that leave the graph
        said = f"{'it gets past this error, and then' if past else 'then'} something else is wrong: {wrong}"
        return replace(trial(False, said), partly=past)
    if _took_another_course(before, after):
        return trial(None, f"it ran to its end, but by another course: {_calls(after, before)}")
    return trial(True, _ran(before, after, passes, what))


def _trains_more(before: Account, after: Account) -> bool:
    """Whether leaves train that did not, in a program in which nothing failed: that may not be meant."""
    return not {*after.reached} <= {*before.reached} or not {*after.moved} <= {*before.moved}


def hung(before: float, after: float, *, choice: bool = False) -> Trial:
    """The verdict on a program that was stopped before it had passed the place, after so many seconds.

    Parameters
    ----------
    before
        How long the program took as it is.
    """
    ok: bool | None = None
    why = f"it was stopped after {after:.0f} s, before it had passed the place"
    if after > 2 * before + 1:
        ok = False
        why = f"did not pass the place in {after:.0f} s (the program had come there within {max(before, 0.1):.1f} s)"
    return Trial(ok, why, round(after, 2), 0, choice)


def _further(before: Account, after: Account, call: BackwardCall | None) -> tuple[int, str]:
    """How many further passes of the loop ran (calls, where no loop goes on), and the word for them."""
    calls = max(0, after.ran - before.ran - (call is not None))
    failed = call.place.iteration if call is not None else None
    if failed is not None and after.iteration > failed:
        passes = min(calls, after.iteration - failed)
        return passes, "pass" if passes == 1 else "passes"
    return calls, "backward call" if calls == 1 else "backward calls"


def _ran(before: Account, after: Account, further: int, what: str) -> str:
    """What happened, where nothing was wrong."""
    if after.ended == "end":
        ran = f"ran to its end in {_seconds(after)}"
    elif after.ended == "time" and not further:
        ran = f"ran past the place, and was stopped after {_seconds(after)}"
    elif not further:
        ran = f"ran as far as the program had come, in {_seconds(after)}"
    else:
        ran = f"ran {further} further {what} in {_seconds(after)}"
    if before.held_bytes and after.held_bytes and after.held_bytes != before.held_bytes:
        ran += (
            f", and saved tensors took at most {bytes_text(after.held_bytes)} (before: {bytes_text(before.held_bytes)})"
        )
    return ran


def _seconds(account: Account) -> str:
    return f"{max(account.seconds, 0.1):.1f} s"


def _new_errors(
    before: Account, after: Account, finding: Finding, call: BackwardCall | None, inserted: int
) -> list[Raised]:
    """The errors that the program did not raise before; its own error is one that must be gone."""
    own = _own_error(before, finding, call)
    left = Counter((one.step, one.type) for one in before.errors if one is not own)
    new = []
    for one in after.errors:
        step = one.step - 1 if inserted and one.step > inserted else one.step
        if left[step, one.type] > 0:
            left[step, one.type] -= 1
        else:
            new.append(one)
    return new


def _is_of_files(error: Raised) -> bool:
    """Whether an error says something of files or of the machine, such as that a folder is there already."""
    kind = getattr(builtins, error.type, None)
    return isinstance(kind, type) and issubclass(kind, OSError)


def _is_past(
    before: Account, after: Account, finding: Finding, call: BackwardCall | None, fix: Fix, new: Raised
) -> bool:
    """Whether what had failed succeeded, and what the program raised then is no other form of the same.

    Nor does it come from a line of the fix, or from a name that the fix has taken away.
    """
    if new.type in _OF_NAMES:
        return False
    if call is None:  # no call had failed, but a line that read a gradient, say
        if after.headlines.get(finding.kind, finding.headline) == finding.headline or after.ran < before.ran:
            return False
    elif after.ran <= before.ran or after.findings.get(finding.kind, 0) > 0:
        return False
    return not any(_is_near(edit, new) for edit in fix.edits)


def _is_near(edit: TextEdit, error: Raised) -> bool:
    """Whether an error was raised in a line that an edit wrote, or next to one."""
    where, _, line = error.spot.rpartition(":" if edit.file is not None else "line ")
    known = line.isdecimal() and (edit.file is None or where == edit.file)
    return not error.spot or (known and edit.start[0] <= int(line) <= edit.end[0] + 1 + edit.new.count("\n"))


def _own_error(before: Account, finding: Finding, call: BackwardCall | None) -> Raised | None:
    """The error that a finding explains."""
    message = call.error if call is not None else None
    place = finding.failed_at or finding.made_at
    for one in before.errors:
        if (message is not None and one.message == message) or (place is not None and one.spot == place.spot):
            return one
    return before.errors[0] if finding.severity == "error" and before.errors else None


# -- the checks: each says what is wrong, or nothing ------------------------------------------------------


def _still_there(before: Account, after: Account, finding: Finding, call: BackwardCall | None, fix: Fix) -> str:
    if finding.severity == "info":
        gone = finding.headline not in after.infos
    else:
        gone = after.findings.get(finding.kind, 0) < before.findings.get(finding.kind, 0)
    if gone:
        still = finding.tensor is not None and all(finding.tensor in map(spoken, a.starved) for a in (before, after))
        return f"`{finding.tensor}` still gets no gradient" if finding.kind == "silent" and still else ""
    now = after.headlines.get(finding.kind, finding.headline)
    return f"{'it stays wrong' if now == finding.headline else 'then this is wrong'}: {now}"


def _piles_elsewhere(before: Account, after: Account, finding: Finding) -> str:
    """What piles up in the end, if that is nothing of what the finding names: another line keeps the graphs, too."""
    if finding.kind != "leak" or after.findings.get("leak", 0) != before.findings.get("leak", 0):
        return ""
    now = after.headlines.get("leak", "")
    return "" if any(f"`{one}`" in now for one in finding.carriers) else now


def _only_in_part(before: Account, after: Account, finding: Finding, call: BackwardCall | None, fix: Fix) -> str:
    """Which line cuts off what a fix has given a graph: another one brings a gradient, so it is a wrong one.

    It was a number, and stands where only a number was meant: ``torch.tensor(k)``, ``math.log(k)``.
    """
    if finding.kind != "silent" or finding.tensor is None or before.numbers is None or after.numbers is None:
        return ""
    for line, leaves in after.numbers.items():
        if line not in before.numbers and finding.tensor in map(spoken, leaves):
            return f"`{finding.tensor}` gets only a part of its gradient: {line} takes the bare values of it"
    return ""


def _new_finding(before: Account, after: Account) -> str:
    """What is wrong that was not; empty: nothing."""
    return next(
        (after.headlines[kind] for kind, number in after.findings.items() if number > before.findings.get(kind, 0)), ""
    )


def _fewer_calls(before: Account, after: Account, finding: Finding, call: BackwardCall | None, fix: Fix) -> str:
    if after.ran >= before.ran or _took_another_course(before, after):
        return ""
    return f"only {_calls(after, before)}{' the error' if before.errors else ''}"


def _took_another_course(before: Account, after: Account) -> bool:
    """Whether a program in which nothing fails came to its end with fewer calls.

    How often it calls can depend on chance, or on what the model has learned: an episode ends sooner. That says nothing
    of the fix, and a run of another course is no proof of it either.
    """
    return after.ran < before.ran and after.ended == "end" and not before.errors and not after.errors


def _calls(after: Account, before: Account) -> str:
    return f"{after.ran} backward call{'s' * (after.ran != 1)} ran, and {before.ran} did before"


def _fewer_passes(before: Account, after: Account, finding: Finding, call: BackwardCall | None, fix: Fix) -> str:
    """A loop that ends early raises nothing. A call that has been moved behind its loop has no iteration."""
    wanted = call.place.iteration if call is not None else before.iteration
    if wanted is None or after.ended != "end" or after.iteration < 0 or after.outside_loops:
        return ""
    if _took_another_course(before, after):
        return ""
    if after.iteration >= wanted:
        return ""
    ended = "1 pass" if after.iteration == 0 else f"{after.iteration + 1} passes"
    return f"the loop ended after {ended}, and it had come to pass {wanted + 1} before"


def _starved(before: Account, after: Account, finding: Finding, call: BackwardCall | None, fix: Fix) -> str:
    """A leaf that got a gradient, and that steps modify where there are any, must still get one.

    If each call of the line that failed had reached it, or the fix is known to cut it off, it must get one behind that
    call too.
    """
    moved = before.moved or after.moved  # what is no parameter of an optimizer was not trained before either
    trained = [path for path in before.reached if not moved or path in moved]
    if fix.id == "freeze":  # which is to take their gradients from some
        trained = [path for path in trained if local(path) not in map(local, fix.starves)]
    if after.moved and not before.moved and not before.errors:
        trained = []  # a program whose steps changed nothing
    lost = [path for path in trained if path not in after.reached]
    if not lost and _went_on(after):
        wanted = {*map(local, fix.starves), *map(local, before.steady)}  # a fix names it as the program does
        lost = [path for path in trained if local(path) in wanted and path not in after.reached_later]
    return f"{_named(lost)} no gradient any more" if lost else ""


def _went_on(after: Account) -> bool:
    """Whether anything is known of calls behind the failing one."""
    return bool(after.reached_later)


def _constant(before: Account, after: Account, finding: Finding, call: BackwardCall | None, fix: Fix) -> str:
    if not after.moved:
        return ""
    for place, losses in after.losses.items():
        if len(losses) >= _SAME and len(set(losses)) == 1 and losses[0] != 0:
            return f"the loss{f' ({place})' if place else ''} stays {losses[0]:.6g} while the weights change"
    return ""


def _named(paths: Sequence[str]) -> str:
    names = ", ".join(f"`{local(path)}`" for path in paths[:_MOST_NAMED])
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return f"{names}{more} {'gets' if len(paths) == 1 else 'get'}"
