"""Operations whose derivative is zero: the list is what PyTorch's own formulas say."""

import re
from pathlib import Path

import torch

from graphwidget.diagnosis.findings.silences import flat

TABLE = Path(torch.__file__).parents[1] / "torchgen" / "packaged" / "autograd" / "derivatives.yaml"
MEANT = {"fill"}  # its result has no input that could get a gradient


def test_each_operation_with_a_formula_of_zeros_is_known() -> None:
    zero = set()
    for entry in re.split(r"^- name: ", TABLE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        name = re.match(r"\w+", entry)
        formula = re.search(r"^  self: (.*)", entry, flags=re.M)
        if name is not None and formula is not None and re.fullmatch(r"zeros_like\(\w+\)", formula[1].strip()):
            zero.add(name[0])
    computing = {one for one in zero if not one.endswith(("_", "_backward"))} - MEANT
    assert computing and computing <= {name.lower() for name in (*flat._STEPWISE, *flat._DRAWN)}
