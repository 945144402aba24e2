"""Piles of graphs, told by the calls that ran them."""

from array import array
from dataclasses import replace

from build import HELD, N, graph, leaf
from records import place, placed
from told import findings_of

from graphwidget.diagnosis.findings import leak
from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.engine.what_if import bytes_held
from graphwidget.model import BackwardCall, CellRun, Owner, Record, SlotState, TensorRef

CELL = "for x in xs:\n    y = f(x)\n    y.backward()\n    seen.append(y)\n"


def loop(passes, path, executed=lambda i: [10 + i]):
    """`passes` graphs of one node, each owned by `path(i)`; call i ran the uids `executed(i)`."""
    nodes = [N(f"n{i}", "w", (HELD,), seq=2 * i) for i in range(passes)]
    shot = graph(*nodes, leaf("w"))
    shot = placed(shot, [place(1, 2, iteration=i) for i in range(passes + 1)])
    shot = replace(
        shot,
        uid=array("q", [*range(10, 10 + passes), 99]),
        owners=tuple(Owner(path(i), i) for i in range(passes)),
    )
    root = (TensorRef(0, 0, ("y",)),)
    calls = tuple(
        BackwardCall(
            i,
            place(1, 3, iteration=i, source="y.backward()"),
            "backward",
            False,
            False,
            root,
            (),
            result="ok",
            executed=array("q", executed(i)),
            newest_seq=2 * i + 1,
        )
        for i in range(passes)
    )
    return Record(shot, calls, (), {0: CellRun(0, 1, CELL, "c1")})


def test_a_list_that_keeps_what_was_run_piles_up_by_the_third_iteration():
    assert not list(leak.find(loop(2, lambda i: f"seen[{i}]")))
    (finding,) = leak.find(loop(3, lambda i: f"seen[{i}]"))
    assert finding.carriers == ("seen",) and finding.severity == "warning"
    assert finding.headline == "Graphs of 3 iterations pile up in `seen`."
    assert text_edit.shown(CELL, finding.fixes[0].edits) == ("- seen.append(y)", "+ seen.append(y.detach())")
    assert finding.fixes[0].at == (1, 4)


def test_a_list_that_one_call_ran_as_a_whole_is_no_pile():
    assert not list(leak.find(loop(5, lambda i: f"seen[{i}]", lambda i: [10, 11, 12, 13, 14] if i == 4 else [50 + i])))


def test_calls_that_were_only_counted_are_taken_to_have_run_their_graphs():
    assert list(leak.find(loop(4, lambda i: f"seen[{i}]", lambda i: [])))


def test_calls_that_were_only_counted_have_run_no_more_than_the_numbers_say():
    record = loop(4, lambda i: f"seen[{i}]", lambda i: [])
    # Graphs that nothing has run are a pile for what they keep: these keep nothing.
    shot = record.snapshot
    record = replace(record, snapshot=replace(shot, slot_state=bytes([SlotState.UNSAVED]) * len(shot.slot_state)))
    ran = [replace(c, highest_seq=c.newest_seq - 1, distances=array("q", range(9))) for c in record.calls]
    assert list(leak.find(replace(record, calls=tuple(ran))))
    others = [replace(c, highest_seq=c.newest_seq + 100, distances=array("q", [0, 1])) for c in record.calls]
    assert not list(leak.find(replace(record, calls=tuple(others))))


def test_a_step_of_a_higher_order_gradient_ends_no_iteration():
    record = loop(4, lambda i: f"seen[{i}]")
    calls = tuple(replace(call, create_graph=True, api="autograd.grad") for call in record.calls)
    assert not list(leak.find(replace(record, calls=calls)))


def test_bytes_count_once_per_storage():
    shot = graph(
        N("a", "b", (HELD, HELD), storage=(0, 0)), N("b", "", (HELD,)), storages=loop(1, str).snapshot.storages
    )
    assert bytes_held(shot, [0, 1]) == 16


EMA = """class EMA:
    def __init__(self, net):
        self.shadow = {n: p.clone() for n, p in net.named_parameters()}
    def update(self, net):
        for n, p in net.named_parameters():
            self.shadow[n] = 0.9 * self.shadow[n] + 0.1 * p
net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
ema = EMA(net)"""


def test_entries_of_a_dict_are_one_pile_and_are_cut_where_they_are_put_in():
    """Their keys have dots: ``shadow['0.weight']``. The line that makes the dict runs once."""
    (found,) = findings_of(EMA, "for _ in range(4):\n    net(torch.ones(1, 2)).sum().backward()\n    ema.update(net)")
    assert found.kind == "leak" and found.carriers == ("ema.shadow",)
    assert found.fixes[0].edit == (
        "- self.shadow[n] = 0.9 * self.shadow[n] + 0.1 * p",
        "+ self.shadow[n] = (0.9 * self.shadow[n] + 0.1 * p).detach()",
    )


REPLAY = """from collections import deque
class Buffer:
    def __init__(self, size):
        self.episodes = deque(maxlen=size)
    def insert(self, episode):
        self.episodes.append(episode)
    def sample(self):
        last = list(self.episodes)[-4:]
        return {key: torch.stack([one[key] for one in last]) for key in last[0]}
def train(batch):
    loss = critic(batch["a"].detach()).mean()
    loss.backward()
buffer, actor, critic = Buffer(SIZE), nn.Linear(2, 2), nn.Linear(2, 1)"""
COLLECT = """for _ in range(12):
    buffer.insert({"a": actor(torch.randn(2)).tanh(), "r": torch.ones(1)})
    train(buffer.sample())"""


def test_the_buffer_that_grows_is_named_and_not_the_batch_that_is_taken_of_it():
    (finding,) = findings_of(REPLAY.replace("SIZE", "5000"), COLLECT)
    assert finding.carriers == ("buffer.episodes",)
    first = finding.fixes[0]
    assert first.edit[-1].endswith("{k: v.detach() if hasattr(v, 'detach') else v for k, v in episode.items()})")
    detaching = REPLAY.replace("SIZE", "5000").replace(
        "append(episode)", "append({**episode, 'a': episode['a'].detach()})"
    )
    assert findings_of(detaching, COLLECT) == ()


def test_a_short_queue_and_a_batch_of_its_elements_do_not_pile_up():
    assert findings_of(REPLAY.replace("SIZE", "6"), COLLECT) == ()
