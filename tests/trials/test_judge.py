"""The judge: what a run with a fix in it must have done."""

from dataclasses import replace

import pytest
import records

from graphwidget.model import BackwardCall, Event, Finding, Fix, Record, Snapshot, TextEdit, Trial
from graphwidget.trials.account import Account, Raised, account_of, most_held
from graphwidget.trials.judge import hung, judge
from graphwidget.trials.rerun import Edited, Rerun
from graphwidget.trials.trial import in_order, with_trial, worth_showing

ERROR = Raised(1, "RuntimeError", records.FREED, "train.py:9")
FINDING = Finding("second_backward", "error", "…", "② needs what ① freed.", call=1)
CALL = BackwardCall(
    1, records.place(1, 9, iteration=1), "backward", False, False, (), (), result="raised", error=records.FREED
)
FIX = Fix("detach", "cut the graph", verified=True)
BEFORE = Account(
    begun=2,
    ran=1,
    iteration=0,
    errors=(ERROR,),
    findings={"second_backward": 1},
    headlines={"second_backward": FINDING.headline},
    reached=("w",),
    seconds=0.5,
)
AFTER = Account(begun=5, ran=5, iteration=4, reached=("w",), reached_later=("w",), seconds=2.1, ended="enough")


def judged(after=AFTER, before=BEFORE, finding=FINDING, fix=FIX, call=CALL, copy=None):
    return judge(before, after, finding, fix, call, copy)


def test_a_program_that_runs_on_passes():
    assert judged().ok is True
    assert judged().sentence == "Tried: ran 3 further passes in 2.1 s."
    assert (judged().passes, judged().seconds) == (3, 2.1)


def test_a_program_that_ends_says_so():
    assert judged(replace(AFTER, ended="end")).why == "ran to its end in 2.1 s"


def test_its_own_error_must_be_gone():
    tried = judged(replace(AFTER, errors=(ERROR,), ran=1))
    assert tried.ok is False and tried.why.startswith("raised RuntimeError: Trying to backward")


def test_what_got_no_gradient_must_get_one():
    finding = replace(FINDING, kind="silent", severity="warning", tensor="net.bias")
    before = Account(ran=5, findings={"silent": 1}, headlines={"silent": "…"}, starved=("fit:net.bias", "net.weight"))
    after = replace(AFTER, starved=("fit:net.bias",))
    assert judged(after, before, finding, call=None).why == "`net.bias` still gets no gradient"
    assert judged(replace(AFTER, starved=("net.weight",)), before, finding, call=None).ok is True


def test_a_line_that_cuts_off_what_the_fix_gave_a_graph_leaves_a_part_of_the_gradient():
    finding = replace(FINDING, kind="silent", severity="warning", tensor="model.w", call=None)
    before = replace(BEFORE, errors=(), findings={"silent": 1}, numbers={"k = float(w)": ("model.w",)})
    after = replace(AFTER, numbers={"y = torch.tensor(k) * x": ("model.w",)})
    assert judged(after, before, finding, call=None).why == (
        "`model.w` gets only a part of its gradient: y = torch.tensor(k) * x takes the bare values of it"
    )
    for fine in (
        replace(after, numbers={"y = torch.tensor(k) * x": ("model.v",)}),  # of another parameter
        replace(after, numbers=before.numbers),  # it did so before, and something else was wrong
        replace(after, numbers=None),  # nothing was measured
    ):
        assert judged(fine, before, finding, call=None).ok is True


def test_another_error_is_no_success():
    name = Raised(1, "NameError", "name 'h' is not defined", "train.py:8")
    assert judged(replace(AFTER, errors=(name,))).why == "raised NameError: name 'h' is not defined (train.py:8)"


def test_a_second_mistake_that_shows_then_is_said():
    edit = TextEdit((4, 0), (4, 0), "h = h.detach()\n", None, "train.py")
    fix = replace(FIX, edits=(edit,))
    later = Raised(1, "KeyError", "'epoch'", "train.py:30")
    tried = judged(replace(AFTER, errors=(later,), ran=2), fix=fix)
    assert tried.sentence == "Tried: it gets past this error, then the program raised KeyError: 'epoch' (train.py:30)."
    passed, failed = replace(fix, tried=Trial(True, "")), replace(fix, tried=Trial(False, ""))
    partly = with_trial(fix, tried)
    assert not partly.verified
    assert in_order([failed, partly, passed]) == (passed, partly, failed)


@pytest.mark.parametrize(
    ("after", "spot"),
    [
        (replace(AFTER, ran=1), "train.py:30"),  # the call failed again, in another way
        (replace(AFTER, ran=2), "train.py:4"),  # the line that the fix wrote
        (replace(AFTER, ran=2, findings={"second_backward": 1}), "train.py:30"),  # the next pass fails as this one did
    ],
)
def test_what_the_fix_has_caused_is_no_second_mistake(after, spot):
    fix = replace(FIX, edits=(TextEdit((4, 0), (4, 0), "h = h.detach()\n", None, "train.py"),))
    tried = judged(replace(after, errors=(Raised(1, "RuntimeError", "…", spot),)), fix=fix)
    assert tried.ok is False and not tried.partly


def test_the_next_gradient_that_is_none_is_a_second_mistake():
    """Both lines raise the same words in the same kind of finding, and no call fails."""
    none = "unsupported operand type(s) for *: 'float' and 'NoneType'"
    finding = replace(FINDING, kind="no_grad", headline="`w.grad` is None.", call=None)
    own, later = Raised(1, "TypeError", none, "train.py:9"), Raised(1, "TypeError", none, "train.py:10")
    before = replace(BEFORE, errors=(own,), findings={"no_grad": 1}, headlines={"no_grad": finding.headline})
    for headline, partly in (("`b.grad` is None.", True), (finding.headline, False)):
        after = replace(AFTER, errors=(later,), ran=1, findings={"no_grad": 1}, headlines={"no_grad": headline})
        assert judged(after, before, finding, call=None).partly is partly


def test_errors_that_other_cells_raised_before_are_not_new():
    other = Raised(4, "KeyError", "k")
    assert judged(replace(AFTER, errors=(other,)), replace(BEFORE, errors=(ERROR, other))).ok is True
    assert judged(replace(AFTER, errors=(other, other)), replace(BEFORE, errors=(ERROR, other))).ok is False


def test_a_cell_that_runs_once_more_moves_the_others_back():
    other, copy = Raised(4, "KeyError", "k"), Edited(Rerun("a.py"), inserted=1, begins=1)
    after = replace(AFTER, errors=(replace(other, step=5),))
    assert judged(after, replace(BEFORE, errors=(ERROR, other)), copy=copy).ok is True


def test_an_error_before_the_first_edited_cell_says_nothing_of_the_fix():
    after = replace(AFTER, errors=(Raised(1, "OSError", "no file"),))
    assert judged(after, copy=Edited(Rerun("a.py"), begins=2)).ok is None


@pytest.mark.parametrize("type_", ["OutOfMemoryError", "EOFError"])
def test_what_the_machine_lacks_says_nothing_of_the_fix(type_):
    assert judged(replace(AFTER, errors=(Raised(1, type_, ""),))).ok is None


def test_the_finding_must_be_gone():
    same = {"findings": {"second_backward": 1}, "headlines": {"second_backward": "③ needs what ② freed."}}
    assert judged(replace(AFTER, **same)).why == "then this is wrong: ③ needs what ② freed."


def test_information_must_be_gone_too():
    about = replace(FINDING, kind="silent", severity="info", call=None)
    assert judged(replace(AFTER, infos=(about.headline,)), finding=about).ok is False
    assert judged(finding=about).ok is True


def test_a_new_finding_is_no_success():
    leak = {"findings": {"leak": 1}, "headlines": {"leak": "Graphs pile up in `keep`."}}
    assert judged(replace(AFTER, **leak)).why == "then something else is wrong: Graphs pile up in `keep`."


def test_fewer_calls_are_no_success():
    assert judged(replace(AFTER, ran=0)).ok is False


def test_a_program_without_errors_that_ends_sooner_proves_nothing():
    """An episode of reinforcement learning ends when it ends: by chance, or by what the policy has learned."""
    about = replace(FINDING, kind="leak", severity="warning", call=None)
    before = replace(BEFORE, errors=(), findings={"leak": 1}, ran=20, iteration=9)
    after = replace(AFTER, ran=16, iteration=7, ended="end")
    tried = judged(after, before, about, call=None)
    assert tried.ok is None and not tried.passed
    assert tried.why == "it ran to its end, but by another course: 16 backward calls ran, and 20 did before"
    assert judged(replace(after, reached=("v",), reached_later=()), before, about, call=None).ok is False
    assert judged(replace(after, ran=20, iteration=9), before, about, call=None).ok is True


def test_a_loop_that_ends_early_is_no_success():
    after = replace(AFTER, ran=1, begun=1, iteration=0, ended="end")
    assert judged(after).why == "the loop ended after 1 pass, and it had come to pass 2 before"
    moved_behind_the_loop = replace(after, outside_loops=True)
    assert judged(moved_behind_the_loop).ok is True


def test_what_trained_must_still_train():
    assert judged(replace(AFTER, reached=("v",))).why == "`w` gets no gradient any more"


def test_a_leaf_that_no_step_modifies_is_not_trained():
    assert judged(replace(AFTER, reached=("v",)), replace(BEFORE, reached=("w", "v"), moved=("v",))).ok is True


def test_a_leaf_that_a_fix_is_known_to_starve_must_have_a_gradient_behind_the_failing_call():
    after = replace(AFTER, reached=("v", "w"), reached_later=("v",))
    assert judged(after).ok is True
    assert judged(after, fix=replace(FIX, starves=("w",))).ok is False


def test_a_leaf_of_a_function_is_known_by_the_name_that_the_fix_has_for_it():
    before = replace(BEFORE, reached=("main:w", "main:v"))
    after = replace(AFTER, reached=("main:w", "main:v"), reached_later=("main:v",))
    verdict = judged(after, before, fix=replace(FIX, starves=("w",)))
    assert verdict.ok is False and verdict.why == "`w` gets no gradient any more"


def test_a_leaf_that_each_call_of_the_line_had_reached_must_have_a_gradient_behind_the_failing_call():
    after = replace(AFTER, reached=("v", "w"), reached_later=("v",))
    assert judged(after, replace(BEFORE, steady=("w",))).why == "`w` gets no gradient any more"
    assert judged(after, replace(BEFORE, reached=("v", "w"), steady=("w",), moved=("v",))).ok is True


def test_a_leaf_of_the_loop_s_own_is_not_what_should_train():
    """``fast = (w - lr * g).detach().requires_grad_()``: without the cut it is no leaf, and `w` trains."""
    before = replace(BEFORE, reached=("fast[0]",), moved=())
    assert judged(replace(AFTER, reached=("w",), moved=("w",)), before).ok is True
    assert judged(replace(AFTER, reached=("w",)), before).ok is False


def test_only_what_all_calls_of_the_line_reached_before_it_failed_is_steady():
    def call(n, line, *reached, result="ok"):
        place = records.place(1, line, iteration=n)
        return BackwardCall(n, place, "backward", False, False, (), (), result=result, reached=reached)

    def steady(*calls):
        record = Record(Snapshot(), calls)
        return account_of(record, (), (), begun=4, failing=4, seconds=1.0, until_it_failed=True).steady

    failed = call(4, 9, result="raised")
    assert steady(call(1, 9, "h0", "w"), call(2, 9, "w"), call(3, 7, "v"), failed) == ("w",)
    assert steady(call(1, 9, "h0", "w"), call(3, 7, "v"), failed) == ()  # what begins a state is reached once


def test_graphs_that_pile_up_elsewhere_then_are_said_and_the_fix_helps_partly():
    finding = Finding("leak", "warning", "…", "Graphs of 3 iterations pile up in `ring`.", carriers=("ring",))
    before = Account(findings={"leak": 1}, headlines={"leak": finding.headline})
    other = "Graphs of 3 iterations pile up in `self.state`."
    after = replace(before, headlines={"leak": other})
    tried = judged(after, before, finding, call=None)
    assert tried.partly and other in tried.why
    assert not judged(before, before, finding, call=None).partly  # it stays where it was
    assert judged(after, replace(before, findings={"leak": 2}), finding, call=None).ok is True  # the other was there


def test_a_loss_that_stays_the_same_while_the_optimizer_steps_is_a_constant():
    after = replace(AFTER, moved=("w",), losses={"train.py:9": (0.5, 0.5, 0.5, 0.5)})
    assert judged(after).why == "the loss (train.py:9) stays 0.5 while the weights change"
    assert judged(replace(after, moved=())).ok is True
    assert judged(replace(after, losses={"train.py:9": (0.5, 0.4, 0.5)})).ok is True


def test_a_choice_is_not_verified_because_it_runs():
    tried = judged(fix=replace(FIX, id="allow_unused"))
    assert tried.ok is True and not tried.decides
    assert tried.sentence.endswith("Whether it is meant so, only you can say.")
    assert judged(replace(AFTER, ran=0), fix=replace(FIX, id="allow_unused")).decides


def test_what_makes_more_train_than_did_is_a_choice():
    about = replace(FINDING, kind="silent", severity="warning", call=None)
    before = replace(BEFORE, errors=(), findings={"silent": 1}, ran=4, begun=4)
    assert judged(finding=about, before=before).decides
    assert not judged(replace(AFTER, reached=("v", "w")), before, about).decides
    assert not judged(replace(AFTER, moved=("v",)), before, about).decides


def test_memory_is_said_where_it_changes():
    before, after = replace(BEFORE, held_bytes=2000), replace(AFTER, held_bytes=4000)
    assert judged(after, before).why.endswith("saved tensors took at most 4.0 kB (before: 2.0 kB)")


def test_memory_of_what_runs_behind_the_place_is_not_compared():
    """What failed keeps what it would have freed, and never came behind that."""
    held = [(0, 2000), (1, 427_000), (2, 127_000)]
    events = [Event(n, "call", None, call=n, held_bytes=size) for n, size in held]
    assert (most_held(events, 1), most_held(events, 2), most_held(events, 3)) == (2000, 427_000, 427_000)
    assert most_held([Event(0, "cell", 1, held_bytes=5), Event(1, "call", 1, call=0)], 3) == 5


def test_a_program_that_does_not_come_to_the_place_in_far_more_time_hangs():
    assert hung(0.5, 10.0).ok is False
    assert hung(8.0, 10.0).ok is None


def test_time_that_is_up_behind_the_place_is_no_failure():
    assert judged(replace(AFTER, ended="time")).ok is True
    assert judged(replace(AFTER, ended="time", ran=1, seconds=10.0)).ok is False


def test_an_account_crosses_as_text():
    account = replace(AFTER, errors=(ERROR,), losses={"a": (0.5, 1.0)}, headlines={"leak": "é"})
    assert Account.from_json(account.to_json()) == replace(account, losses={"a": [0.5, 1.0]})


def test_what_passed_stands_first_and_what_failed_last_and_a_choice_is_not_moved():
    passed, failed, choice = Trial(True, ""), Trial(False, ""), Trial(True, "", choice=True)
    fixes = [replace(FIX, id=name, tried=tried) for name, tried in zip("abcd", [failed, choice, None, passed])]
    assert [fix.id for fix in in_order(fixes)] == ["d", "b", "c", "a"]
    assert [with_trial(FIX, tried).verified for tried in (passed, failed, choice)] == [True, False, True]


def test_beside_a_fix_that_passed_one_that_failed_is_not_shown():
    passed, failed, cut_off = (
        Trial(True, ""),
        Trial(False, "it stays wrong"),
        Trial(None, "there was not enough memory"),
    )
    partly = replace(failed, partly=True)
    fixes = [
        replace(FIX, id=name, tried=tried) for name, tried in zip("abcde", [passed, failed, cut_off, None, partly])
    ]
    assert [fix.id for fix in worth_showing(FINDING, None, fixes)] == ["a", "c", "d"]
    assert worth_showing(FINDING, None, fixes[1:]) == fixes[1:]


def test_what_starves_passes_no_choice_that_ran():
    ran, ran_as_choice = Trial(True, ""), Trial(True, "", choice=True)
    choice = replace(FIX, id="choice", tried=ran_as_choice)
    starving = replace(FIX, id="starving", starves=("net.w",), tried=ran)
    advice = replace(FIX, id="advice", edits=())
    assert [one.id for one in in_order([choice, starving])] == ["choice", "starving"]
    assert [one.id for one in in_order([advice, starving])] == ["starving", "advice"]
