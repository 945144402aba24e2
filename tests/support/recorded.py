"""A run that is tracked and recorded at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import graphwidget


def run(path: Path, passes: int = 3, *, max_mb: float = 64.0) -> Any:
    """Train and then fail: calls that are counted, one that raises. Returns the tracker, which has ended."""
    with graphwidget.track(record=path, max_mb=max_mb) as tracker:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(passes):
            loss = model(torch.ones(2, 3)).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        hidden = torch.zeros(1, 3)
        try:
            for _ in range(2):
                hidden = torch.tanh(model[0](torch.ones(1, 3) + hidden))
                hidden.sum().backward()
        except RuntimeError:
            pass
    return tracker
