from dataclasses import dataclass

import torch


@dataclass
class Memory:
    level: torch.Tensor | None = None
    windows: int = 0
