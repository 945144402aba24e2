"""What a record tells: the same as the tracker told that it was written by, without the program and without torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graphwidget.capture.ghosts import graphs_that_matter, merged
from graphwidget.diagnosis.diagnose import diagnose
from graphwidget.diagnosis.verdict import verdict
from graphwidget.exports.formats import ANSWERS, export
from graphwidget.exports.texts import texts_of
from graphwidget.model import BackwardCall, CellError, Drawing, Event, Finding, Record, Snapshot
from graphwidget.record.parts import Header
from graphwidget.record.reader import Content, read
from graphwidget.render.program import ProgramRun
from graphwidget.render.report import summary
from graphwidget.render.words import count

if TYPE_CHECKING:
    from graphwidget.notebook.views.widget import AutogradView

__all__ = ["RunRecord", "load"]


class RunRecord:
    """A run that was recorded in a file: its calls, events and findings, and the graph as it was last seen.

    Made by `graphwidget.load`. Everything in it is plain data; nothing of the program is there any more, or run.

    Attributes
    ----------
    path : str
        The file.
    about : Header
        What was run (`target`, `arguments`), in which process (`rank`, `ranks`, `pid`), when, and with which versions.

    Examples
    --------
    >>> import os, tempfile, torch, graphwidget
    >>> path = os.path.join(tempfile.mkdtemp(), "run.gwz")
    >>> with graphwidget.track(record=path):
    ...     w = torch.ones(3, requires_grad=True)
    ...     w.exp().sum().backward()
    >>> record = graphwidget.load(path)
    >>> [(call.result, call.freed_bytes) for call in record.calls], record.complete
    ([('ok', 12)], True)
    """

    def __init__(self, path: str, content: Content) -> None:
        self.path = path
        self.about: Header = content.header
        self._content = content

    def __repr__(self) -> str:
        return f"<RunRecord of {self.about.target or 'a program'}: {count(self._content.calls, 'backward call')}>"

    @property
    def calls(self) -> tuple[BackwardCall, ...]:
        """The calls that are in the record, oldest first."""
        return tuple(self._content.history.calls.values())

    @property
    def events(self) -> tuple[Event, ...]:
        """The ticks of the timeline, oldest first; each has its snapshot as far as that is stored."""
        return tuple(self._content.history.events)

    @property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The graphs of the events that have one, oldest first."""
        return tuple(event.snapshot for event in self.events if event.snapshot is not None)

    @property
    def errors(self) -> tuple[CellError, ...]:
        """What the program raised; empty also where its end is not in the record."""
        return self._content.ending.errors if self._content.ending is not None else ()

    @property
    def exit(self) -> int | None:
        """The exit status of the program; None: its end is not in the record, or only a block was recorded."""
        return self._content.ending.exit if self._content.ending is not None else None

    @property
    def complete(self) -> bool:
        """Whether the record goes on to the end of the program."""
        return self._content.ending is not None

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what the record is of, and on what is not in it."""
        return tuple(_notes(self._content))

    def snapshot(self) -> Snapshot:
        """The graph of everything that had a name, as it was last seen."""
        snapshot = self._content.state.record.snapshot
        stored = self.snapshots
        return stored[-1] if not len(snapshot) and stored and not self.complete else snapshot

    def record(self) -> Record:
        """What a diagnosis is made of."""
        return replace(self._content.state.record, snapshot=self.snapshot(), calls=self.calls, runs=self._content.runs)

    def findings(self) -> tuple[Finding, ...]:
        """What is worth saying: as it was said at the program's end; else by what is in the record.

        Examples
        --------
        >>> import os, tempfile, torch, graphwidget
        >>> path = os.path.join(tempfile.mkdtemp(), "run.gwz")
        >>> with graphwidget.track(record=path):
        ...     w = torch.ones(3, requires_grad=True)
        ...     loss = w.exp().sum()
        ...     loss.backward()
        ...     try:
        ...         loss.backward()
        ...     except RuntimeError:
        ...         pass
        >>> [finding.kind for finding in graphwidget.load(path).findings()]
        ['second_backward']
        """
        return self._findings

    @cached_property
    def _findings(self) -> tuple[Finding, ...]:
        said = self._content.findings
        return said if said is not None else tuple(diagnose(self.record()))

    def drawing(self) -> Drawing:
        """The content of a picture, with the dead nodes of calls that matter as ghosts."""
        live, history, events = self.snapshot(), self._content.history, self.events
        graph = merged(live, graphs_that_matter(live, history.calls, history.graph_after))
        return Drawing(
            replace(graph, notes=(*self.notes, *graph.notes)),
            self.calls,
            events,
            self.findings(),
            events[-1].id if events else -1,
            self.about.torch,
            None,
            self._content.state.steps,
            _program_and_rank(self.about),
        )

    def explain(self, format: str = "text") -> str:
        """The answer of ``graphwidget explain``.

        Parameters
        ----------
        format
            ``"text"``, ``"json"``, ``"html"``, ``"svg"``, ``"dot"``, or ``"diff"``: the first fix as a patch.

        Raises
        ------
        ValueError
            If there is no such format.

        Examples
        --------
        >>> import os, tempfile, torch, graphwidget
        >>> path = os.path.join(tempfile.mkdtemp(), "run.gwz")
        >>> with graphwidget.track(record=path):
        ...     w = torch.ones(3, requires_grad=True)
        ...     w.exp().sum().backward()
        >>> print(graphwidget.load(path).explain().splitlines()[-1])
        No finding. 1 backward call, which ran.
        """
        if format not in ANSWERS:
            raise ValueError(f"there is no format {format!r}. There are: {', '.join(ANSWERS)}.")
        return ANSWERS[format](self.program())

    def program(self) -> ProgramRun:
        """The run as the formats of the command line read it."""
        about, record, findings = self.about, self.record(), self.findings()
        return ProgramRun(
            about.file or about.target or self.path,
            about.torch,
            self.errors,
            self.calls,
            findings,
            replace(verdict(record, findings), calls=self._content.calls - _before(self._content)),
            self.drawing,
            target=about.target,
            argv=about.arguments,
            exit=self.exit,
            texts=texts_of(record),
            notes=self.notes,
        )

    @property
    def process(self) -> str:
        """Which process it is of: ``rank 1 of 2``, else its number."""
        return _process(self.about)

    def summary(self) -> str:
        """What was found, in one line.

        Examples
        --------
        >>> import os, tempfile, torch, graphwidget
        >>> path = os.path.join(tempfile.mkdtemp(), "run.gwz")
        >>> with graphwidget.track(record=path):
        ...     w = torch.ones(3, requires_grad=True)
        ...     w.exp().sum().backward()
        >>> graphwidget.load(path).summary()
        'No finding. 1 backward call, which ran.'
        """
        return summary(self.program().verdict)

    @property
    def status(self) -> int:
        """The exit status of ``graphwidget explain``: 1 if the program raised, or a finding has severity error."""
        raised = any(not error.leaves for error in self.errors)
        return int(raised or any(finding.severity == "error" for finding in self.findings()))

    def export(self, format: str, path: str | os.PathLike[str] | None = None) -> Any:
        """The last picture in one of the forms of `Snapshot.export`; an HTML page has the timeline, too."""
        return export(self.drawing(), format, path)

    def view(self, *, height: int | None = None) -> AutogradView:
        """The view of the record: picture, timeline and text as they were; nothing can be run in it."""
        from graphwidget.notebook.views.recorded import view_of_record

        return view_of_record(self, height)


def load(path: str | os.PathLike[str]) -> RunRecord:
    """Open a record that ``graphwidget run -o``, ``track(record=...)`` or ``GRAPHWIDGET_RECORD`` wrote.

    Nothing in it is executed. A file that was cut (by SIGKILL, by a full disk) is read up to its last whole frame.

    Parameters
    ----------
    path
        A ``.gwz`` file.

    Raises
    ------
    UnreadableRecord
        If it cannot be read: no such file, no record, damaged, or of a newer version. It is a `ValueError`.

    Examples
    --------
    >>> import os, tempfile, torch, graphwidget
    >>> path = os.path.join(tempfile.mkdtemp(), "run.gwz")
    >>> with graphwidget.track(record=path):
    ...     w = torch.ones(3, requires_grad=True)
    ...     w.exp().sum().backward()
    >>> graphwidget.load(path)
    <RunRecord of ...: 1 backward call>
    """
    name = os.fspath(path)
    return RunRecord(name, read(name))


def _process(about: Header) -> str:
    return f"rank {about.rank} of {about.ranks}" if about.rank is not None and about.ranks else f"process {about.pid}"


def _program_and_rank(about: Header) -> str:
    name = os.path.basename(about.target) or "a program"
    return f"{name}, {_process(about)}" if about.rank is not None else name


def _before(content: Content) -> int:
    """How many calls had been made when the record began."""
    return min(content.header.calls_before, content.calls)


def _notes(content: Content) -> Iterator[str]:
    about, kept = content.header, len(content.history.calls)
    fork = f", a fork of process {about.parent}" if about.parent else ""
    yield f"A record of {_process(about)}{fork}, read-only: nothing runs."
    if content.damaged_at is not None:
        yield f"The file is cut or damaged at byte {content.damaged_at:,}: what follows is not read."
    if content.ending is None:
        after = f"call {content.calls}" if content.calls else "its beginning"
        yield f"The program's end is not in it: it was running, or was ended at once. What is known goes to {after}."
    before = _before(content)
    if before:
        where = f"in the record of process {about.parent}" if about.parent else "not recorded"
        yield f"It begins after call {before}: what was before is {where}."
    if kept < content.calls - before:
        of = count(content.calls - before, "call")
        yield f"Of {of}, {kept} are in it: older ones were left out to bound its size."
    elif content.state.left_out:
        yield "Older graphs were left out to bound its size."
    if content.state.graphs_too_large:
        yield f"Not in it: {count(content.state.graphs_too_large, 'graph')}, larger than a record can hold."
    yield from (f"graphwidget could not follow this: {problem}" for problem in content.state.problems)
