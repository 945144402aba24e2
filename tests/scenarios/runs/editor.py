"""Apply a fix of `graphwidget explain --format json` to the cells of a program, with the product's own edits."""

from graphwidget.diagnosis.source.edits import text_edit
from graphwidget.model import TextEdit


class CannotApply(Exception):
    """Raised if the fix is not concrete enough, or does not fit the text."""


def apply(cells, fix, order, failed_step):
    """Return the changed cells, and the changed order in which they run."""
    if fix["id"] == "rerun_forward_cell":
        at = failed_step - 1
        return cells, [*order[:at], fix["at"][0], *order[at:]]
    if not fix["edit"]:
        raise CannotApply(f"{fix['id']} has no edit: {fix['text']}")
    if not fix["edits"]:  # a new statement behind all cells
        return [*cells, "\n".join(line[2:] for line in fix["edit"])], [*order, len(cells) + 1]
    return patched(cells, fix["edits"]), list(order)


def patched(cells, edits):
    """Return the cells with the `edits` of a fix applied."""
    made = [TextEdit(tuple(one["start"]), tuple(one["end"]), one["new"], one["cell"]) for one in edits]
    try:
        return list(text_edit.apply_to(dict(enumerate(cells, 1)), made).values())
    except ValueError as why:
        raise CannotApply(str(why)) from None
