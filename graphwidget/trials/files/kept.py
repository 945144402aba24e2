"""Around a trial, in the process that tries: what it needs before, and all that is put back behind it."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from graphwidget.trials.files.keeping import STOPPED, CannotKeep, Keeper, lines_of
from graphwidget.trials.files.left import Left, files_below, named
from graphwidget.trials.files.undoing import undo

__all__ = ["Kept", "PutBack"]


@dataclass(frozen=True)
class PutBack:
    """What came of the files of a trial.

    Attributes
    ----------
    stopped
        Why the program was ended, behind "it": it was about to change what could not have been put back.
    began_from
        Files of the run before that it read, so that it was another run; for people.
    notes
        Sentences about what stays changed.
    """

    stopped: str = ""
    began_from: str = ""
    notes: tuple[str, ...] = ()

    @property
    def why_not(self) -> str:
        """Why the trial decides nothing; empty: it may."""
        if self.stopped:
            return f"it {self.stopped}"
        return f"it began from what the run before had written ({self.began_from})" if self.began_from else ""


class Kept:
    """Files as they were before a trial.

    Parameters
    ----------
    place
        A folder that is made, for the journal and its copies.
    left
        What the run before has left.
    must
        Whether the trial may only run if this can be kept.
    """

    def __init__(self, place: Path, left: Left, *, must: bool) -> None:
        place.mkdir()
        self._place, self._left = place, left
        keeper = Keeper(place, left.folder, str(place.parent), must=must)
        self.cannot = ""  # why the trial may not run
        self._not_kept: list[str] = []
        for path in left.compiled:  # nobody tells before they are written
            try:
                keeper.touch(path)
            except CannotKeep as why:
                self._not_kept.append(f"Not put back: the program {why}.")
                self.cannot = f"it {why}" if must else ""
        self._before = files_below(left.folder)

    def put_back(self) -> PutBack:
        """Undo what the trial did. All of its processes are gone."""
        lines, stopped = lines_of(self._place), self._stopped()
        failed = undo(self._place)
        notes = list(self._not_kept)
        if failed:
            kept = tempfile.mkdtemp(prefix="graphwidget-kept-")
            shutil.move(self._place, kept)
            what = ", ".join(f"{named([path], self._left.folder)} ({why})" for path, why in failed.items())
            notes.append(f"Could not be put back after a trial: {what}. What it was is in {kept}.")
        notes += [f"Not put back: the program {line['why']}." for line in lines if line.get("was") == "not kept"]
        before, after = self._before, files_below(self._left.folder)
        stays = [path for path in {**before, **after} if before.get(path) != after.get(path) and path not in failed]
        if stays:
            what = named(stays, self._left.folder)
            they = "that file stays" if len(stays) == 1 else "those files stay"
            notes.append(
                f"While the program ran again, {what} changed, by compiled code or by another program: {they} so."
            )
        return PutBack(stopped, self._began_from(lines), tuple(notes))

    def _stopped(self) -> str:
        try:
            return (self._place / STOPPED).read_text(encoding="utf-8")
        except OSError:
            return ""

    def _began_from(self, lines: list[dict[str, object]]) -> str:
        """The files that were read before any process of the trial had written them, for people."""
        written: set[object] = set()
        met: list[str] = []
        for line in lines:
            if line.get("was") == "read" and line["path"] not in written:
                met.append(os.fspath(str(line["path"])))
            elif line.get("was") != "around":
                written.add(line.get("path"))
        return named(met, self._left.folder)
