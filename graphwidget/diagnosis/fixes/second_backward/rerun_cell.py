"""Run the cell of the forward pass again before the cell of the backward."""

from __future__ import annotations

import re

from graphwidget.diagnosis.fixes.second_backward.case import Case
from graphwidget.diagnosis.reuse.carrier import Carrier
from graphwidget.diagnosis.wording import outer_at
from graphwidget.model import Fix


def propose(case: Case) -> Fix | None:
    """For a cell with a backward that was run twice; None where it is unknown what the cell computes."""
    reuse, setting = case.reuse, case.setting
    if reuse.same_root:
        made = reuse.graph.place_of(reuse.root_indices[0]) if reuse.root_indices else None
        what = setting.root_name
    else:
        made, what = reuse.carrier_place, Carrier(setting).name
    if re.match(r"_\d+\b|Out\[", what):
        return None  # what a cell displayed goes by the number of that run
    cell = f"In[{made.outer_cell or made.cell}]" if made is not None and made.cell is not None else "its cell"
    itself = made is not None and made.cell_id is not None and made.cell_id == reuse.later.place.cell_id
    return Fix(
        id="rerun_forward_cell",
        text=f"Run {cell} again before this one: it computes `{what}` again.",
        verified=case.works_if_fresh and not itself and (reuse.same_root or setting.one_cell_builds_the_rest),
        at=outer_at(made),
        price="One more forward pass.",
        by_hand=True,
    )
