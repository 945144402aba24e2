from dataclasses import dataclass, field


@dataclass
class Memory:
    context: object = None
    decay: float = 0.9


@dataclass
class Config:
    width: int = 8
    memory: Memory = field(default_factory=Memory)
