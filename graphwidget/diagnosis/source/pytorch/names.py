"""Names of PyTorch's classes in program text: modules without parameters, optimizers, what a cell imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

__all__ = ["OPTIMIZER", "has_parameters", "imported_from"]

# A call that makes an optimizer.
OPTIMIZER = re.compile(r"\b(?:optim\.\w+|SGD|\w*Adam\w*|RMSprop|R?prop|Adagrad|Adadelta|Adafactor|ASGD|LBFGS|Muon)\(")

_WITHOUT_PARAMETERS = re.compile(
    r"\w*Loss|ReLU6?|LeakyReLU|RReLU|\w*[EG]LU|SiLU|Mish|Softplus|Softsign|(Log)?Softmax\w*|(Log)?Sigmoid|(Hard)?[Tt]anh|"
    r"\w*Dropout\w*|Flatten|Unflatten|\w*Pool\w*|Identity|Upsample\w*|CosineSimilarity|PairwiseDistance"
)


def has_parameters(module: str) -> bool:
    """Whether a class of `torch.nn` of this name has parameters."""
    return _WITHOUT_PARAMETERS.fullmatch(module) is None


def imported_from(trees: Collection[ast.AST], package: str) -> set[str]:
    """The names of classes that cells import from a package."""
    imports = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    aliases = (a for node in imports if (node.module or "").startswith(package) for a in node.names)
    return {a.asname or a.name for a in aliases if a.name[:1].isupper()}
