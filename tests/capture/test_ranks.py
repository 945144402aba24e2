"""In a job of several processes, a forecast states its assumption about the other ranks, which it cannot see."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RANK = """
import json, os, sys
import torch, torch.distributed as dist
from torch import nn
import graphwidget as gw
from graphwidget.render.text import forecast_lines

rank, world, how, meeting = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
if how == "ddp":
    model = nn.parallel.DistributedDataParallel(net)
elif how == "fully_shard":
    from torch.distributed.fsdp import fully_shard

    model = fully_shard(net)
loss = model(torch.ones(2, 3)).sum()
told = gw.forecast(loss)
with gw.track() as tracker:
    again = gw.forecast(loss)
loss.backward()
if rank == 0:
    print(json.dumps([told.ok, told.assumes, again.assumes, list(forecast_lines("loss.backward()", told))]))
dist.barrier()
dist.destroy_process_group()
sys.stdout.flush()
# A thread of gloo's that lets go of its last tensors while Python ends aborts the process, now and then.
os._exit(0)
"""


def forecast_of_rank_0(folder: Path, how: str, world: int) -> list:
    program = folder / "rank.py"
    program.write_text(RANK)
    arguments = [str(world), how, str(folder / "meeting")]
    ranks = [
        subprocess.Popen([sys.executable, str(program), str(rank), *arguments], stdout=subprocess.PIPE, text=True)
        for rank in range(world)
    ]
    answers = [rank.communicate(timeout=120)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world
    return json.loads(answers[0].splitlines()[-1])


SAID = "Each of the 2 ranks runs this call and reaches the same parameters, as DistributedDataParallel and FSDP need."


@pytest.mark.parametrize("how", ["ddp", "fully_shard"])
def test_a_forecast_in_a_job_states_what_it_assumes_of_the_other_ranks(tmp_path: Path, how: str) -> None:
    ok, assumes, tracked, lines = forecast_of_rank_0(tmp_path, how, 2)
    assert ok is True
    assert SAID in assumes and SAID in tracked
    assert f"  assumes: {SAID}" in lines


def test_a_job_of_one_has_nobody_to_wait_for(tmp_path: Path) -> None:
    ok, assumes, *_ = forecast_of_rank_0(tmp_path, "ddp", 1)
    assert ok is True and not any("rank" in sentence for sentence in assumes)
