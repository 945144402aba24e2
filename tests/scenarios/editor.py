"""Apply a fix of `graphwidget explain --format json` to the cells of a program, as a person would by hand."""


class CannotApply(Exception):
    """The fix is not concrete enough, or does not fit the text."""


def apply(cells, fix, order, failed_step):
    """The changed cells and the changed order of running them."""
    if fix["id"] == "rerun_forward_cell":
        at = failed_step - 1
        return cells, [*order[:at], fix["at"][0], *order[at:]]
    if not fix["edit"]:
        raise CannotApply(f"{fix['id']} has no edit: {fix['text']}")
    if fix["at"] is None:
        return [*cells, "\n".join(line[2:] for line in fix["edit"])], [*order, len(cells) + 1]
    return patched(cells, fix["at"], fix["edit"]), list(order)


def patched(cells, at, edit):
    """Cells with an edit applied from (cell, line) on: ``- x`` removes, ``  x`` steps over, ``+ x`` writes."""
    texts = [cell.splitlines() for cell in cells]
    cell, line = at[0] - 1, at[1] - 1
    depth, removed = None, False
    for position, step in enumerate(edit):
        sign, text = step[0], step[2:]
        if sign == "+":
            if depth is None:
                depth = indent(texts[cell][line])
            texts[cell].insert(line, depth + text)
            line += 1
            continue
        cell, line = find(texts, cell, line, text)
        if sign == "-":
            depth = indent(texts[cell][line]) if not removed else depth
            last = edit[position + 1 : position + 2]
            keep_block = not removed and not (last and last[0].startswith("+"))
            texts[cell][line : line + 1] = [depth + "pass"] if keep_block else []
            line += keep_block
            removed = True
        else:
            depth, removed = indent(texts[cell][line]), False
            line += 1
    return ["\n".join(lines) + "\n" for lines in texts]


def indent(line):
    return line[: len(line) - len(line.lstrip())]


def find(texts, cell, line, wanted):
    """The next line with this text, in this cell or a later one."""
    while cell < len(texts):
        for at in range(line, len(texts[cell])):
            if texts[cell][at].strip() == wanted.strip():
                return cell, at
        cell, line = cell + 1, 0
    raise CannotApply(f"no line {wanted!r}")
