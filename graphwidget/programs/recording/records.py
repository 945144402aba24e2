"""The records of ``graphwidget run``: of the program itself, and of the processes that it starts."""

from __future__ import annotations

import os
import sys
import time
from functools import partial

from graphwidget.capture.tracker import Tracker
from graphwidget.diagnosis.verdict import verdict
from graphwidget.diagnosis.wording import without_gradients
from graphwidget.model import Record
from graphwidget.programs.journal import Journal
from graphwidget.programs.recording import environment
from graphwidget.programs.recording.own_tracker import at_the_end_of_forks
from graphwidget.programs.target import Start
from graphwidget.record.naming import SUFFIX, name_beside, stem_of_program
from graphwidget.record.parts import Ending, Header
from graphwidget.record.problems import UnreadableRecord
from graphwidget.record.reader import header_of
from graphwidget.record.writer import Writer
from graphwidget.render.report import summary
from graphwidget.render.words import count, function_text

__all__ = ["Records"]

_MOST_HEADLINES = 3  # findings that are named at the end
_MOST_SAID = 8  # records of other processes that are named, with what was found in them
_MOST_LOOKED_AT = 1000


class Records:
    """What is written while a program runs, and the line at its end.

    Parameters
    ----------
    start
        The program.
    output
        The file for its record; None: it gets one only if the environment asks for that.
    asked
        Where the environment has asked for a record; see `environment.take`.
    most_mb
        Bound of each record, in megabytes.
    """

    def __init__(self, start: Start, output: str | None, asked: str | None, most_mb: float) -> None:
        self.start, self.most_mb = start, most_mb
        place = output or asked
        self._place = os.path.abspath(place) if place else None
        self._output = output
        self._folder = os.getcwd()  # messages name files from here, wherever the program goes
        self._began = time.time()
        self._writer: Writer | None = None
        environment.hand_on(self._place, most_mb)

    def begin(self, tracker: Tracker, _journal: Journal) -> None:
        """Record from now on."""
        if self._place is None:
            return
        place = self._place
        beside = partial(name_beside, place, self._stem())
        where = (lambda: place) if self._output else beside
        start = self.start
        header = partial(Header.of_this_process, start.target, start.arguments, start.module)
        self._writer = Writer(tracker, where, header, most_mb=self.most_mb, in_fork=beside)
        at_the_end_of_forks(partial(self.end_in_fork, tracker))
        if self._output:
            self._writer.begin()

    def _stem(self) -> str:
        name = self.start.target if self.start.module else os.path.basename(self.start.target)
        return name.removesuffix(".py") or stem_of_program()

    def end(self, tracker: Tracker, journal: Journal, _file: str) -> None:
        """End the record, and say on standard error what was found and where it is: one line for each process.

        Above it stand the first findings, with their lines.
        """
        findings = tracker.findings()
        if not journal.errors:  # else the explanation stands under the traceback
            for finding in [one for one in findings if one.severity != "info"][:_MOST_HEADLINES]:
                line = f" ({function_text(finding.cause)})" if finding.cause is not None and finding.cause.spot else ""
                print(f"graphwidget: {finding.headline or finding.kind}{line}", file=sys.__stderr__)
        others = self._of_children()
        if others:  # what reads records is not needed else
            from graphwidget.record.run_record import load
        own = self._own(tracker, journal, bool(findings), others)
        if own or tracker.log.count or findings or not others:
            seen = tracker.record()
            missing = "" if findings else _without_gradients(seen)
            words = " ".join(filter(None, [summary(verdict(seen, findings)), missing]))
            self._say("", words, own, bool(findings), measures=bool(missing))
        for path in others[:_MOST_SAID]:
            try:
                record = load(path)
                self._say(record.process, record.summary(), path, bool(record.findings()))
            except UnreadableRecord as error:
                self._say("", f"{error}.", None, False)
        if len(others) > _MOST_SAID:
            self._say("", f"{count(len(others) - _MOST_SAID, 'more record')} beside them.", None, False)

    def _say(self, who: str, words: str, path: str | None, found: bool, measures: bool = False) -> None:
        """Say a line. `measures`: only a program that runs again can tell more, no record can."""
        more = self.start.explained_by if found or measures else ""
        if path is not None:
            name = os.path.relpath(path, self._folder)
            words += f" Record: {name}."
            more = f"graphwidget explain {name}" if found else ""
        line = " ".join(filter(None, [f"{who}:" if who else "", words, f"More: {more}" if more else ""]))
        print(f"graphwidget: {line}", file=sys.__stderr__, flush=True)

    def end_in_fork(self, tracker: Tracker) -> None:
        """A fork of the program ends: so does its own record, if it has one."""
        if self._writer is not None and self._writer.output is not None:
            tracker.end_cell()
            self._writer.end(Ending())

    def _own(self, tracker: Tracker, journal: Journal, found: bool, others: list[str]) -> str | None:
        """The program's own record. A program that only started others has nothing to tell beside theirs."""
        writer = self._writer
        if writer is None or (writer.output is None and not (tracker.log.count or journal.errors)):
            return None
        nothing = not tracker.log.count and not found
        writer.end(Ending(tuple(journal.errors), journal.exit))
        if nothing and others:
            writer.remove()
        return writer.file

    def _of_children(self) -> list[str]:
        """The records that processes started by this one have written."""
        place = self._place or self._folder
        folder = os.path.dirname(place) if place.endswith(SUFFIX) else place
        found = []
        try:
            with os.scandir(folder) as entries:
                new = [e.path for e in entries if e.name.endswith(SUFFIX) and e.stat().st_mtime >= self._began - 1]
        except OSError:
            return []
        for path in sorted(new)[:_MOST_LOOKED_AT]:
            header = header_of(path)
            if header is not None and header.run == str(os.getpid()) and header.pid != os.getpid():
                found.append((header.rank if header.rank is not None else -1, path))
        return [path for _, path in sorted(found)]


def _without_gradients(record: Record) -> str:
    """Which parameters of optimizers had no gradient. Whether a line keeps it from them, this run cannot tell."""
    shown = without_gradients(record)
    return f"No step of an optimizer found a gradient of {shown}: why, was not measured." if shown else ""
