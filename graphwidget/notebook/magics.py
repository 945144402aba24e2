"""The line magic ``%graphwidget``: the view, the findings and forecasts from the keyboard."""

from __future__ import annotations

import difflib
import os
import re
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from IPython.core.magic_arguments import argument, kwds, magic_arguments

from graphwidget.capture.lines.own_code import in_and_out

if TYPE_CHECKING:
    from graphwidget.notebook.extension import Extension
    from graphwidget.notebook.views.display import Standing

__all__ = ["Magics"]

NAME = "graphwidget"
VERBS = {
    "show": "[--present | --no-present] the live view, here (also without a word); large, for an audience, or not",
    "on": "record again",
    "off": "record nothing more; what was recorded stays",
    "explain": "[NAME] what went wrong, or would",
    "forecast": "NAME [--retain-graph] what NAME.backward() would do",
    "steps": "NAME [--retain-graph] | N  node by node: what NAME.backward() would do, or what call N did",
    "nan": "NAME  the first value or gradient below NAME that is not finite; runs a backward that changes nothing",
    "predict": "NAME [fails=no|yes|NODE] [frees=SLOT,SLOT] [--retain-graph] say it before you call NAME.backward()",
    "try": "[N] run the cells again in a fresh process with fix N of the first finding; M.N: of finding M",
    "notes": "on | off: whether errors are explained under their traceback",
    "open": "FILE.gwz: the record of a run, as if it were live; nothing can be run in it",
    "text": "the picture as plain text",
    "svg": "the picture as a static image",
    "code": "whose files are recorded as cells are: `+mylib` adds a package or folder, `-other` leaves one out",
    "reset": "forget calls and ghosts, go on with what is alive",
}
RETAIN = "--retain-graph"
PRESENT, NO_PRESENT = "--present", "--no-present"
RETAINS = ("forecast", "steps", "predict")  # the verbs that take it
TAKES_MORE = ("code", "explain", "forecast", "steps", "predict", "nan", "notes", "open", "try")
USAGE = (
    "%graphwidget [show [--present | --no-present] | on | off | explain [NAME] | "
    "forecast NAME [--retain-graph] | steps NAME|N | predict NAME [--retain-graph] | nan NAME | try [N] | "
    "notes on|off | code [+NAME | -NAME]... | open FILE.gwz | text | svg | reset]"
)
_ANSWER = re.compile(r"(fails|frees)=(.*)")
_MOST_CALLS = 20  # that a message lists
_FAILS = {"yes": True, "no": False}
_COMMENT = re.compile(r"(^|\s)#.*")  # IPython hands comments on


_HELP = "The autograd graph, live. WORDS are one of:\n\n" + "\n".join(
    f"{verb:10}{what}" for verb, what in VERBS.items()
)


def _magic(run: Callable[[Namespace, list[str]], None]) -> Callable[[str], None]:
    """The function behind ``%graphwidget``: `run` gets the arguments, and the unknown options."""

    @magic_arguments(NAME)
    @argument(RETAIN, action="store_true", help="with forecast, steps and predict: a call with retain_graph=True")
    @argument(PRESENT, action="store_true", help="with show: large, with little beside the picture, for an audience")
    @argument(NO_PRESENT, action="store_true", help="with show: with all panels again")
    @argument("words", nargs="*", metavar="WORDS", help="what to do; default: show")
    @kwds(description=_HELP)
    def graphwidget(line: str) -> None:
        words = _COMMENT.sub("", line).strip()
        # Not `parse_argstring`: it has no place for an option between the words.
        run(*parser.parse_known_intermixed_args(words.split(" ") if words else []))

    parser = graphwidget.parser
    parser.allow_abbrev = False
    function: Callable[[str], None] = graphwidget
    return function


class Magics:
    """Registers the magic and its completer, and takes both away again."""

    def __init__(self, extension: Extension) -> None:
        self.extension = extension
        self.shell: Any = extension.shell
        self._standing: Standing | None = None  # made with the first view: it needs what draws

    def register(self) -> None:
        """Make ``%graphwidget`` known to the shell."""
        self.shell.register_magic_function(_magic(self._run), "line", NAME)
        self.shell.set_hook("complete_command", self.complete, str_key=f"%{NAME}")

    def unregister(self) -> None:
        """Take the magic and its completer away."""
        if self._standing is not None:
            self._standing.let_go()
        self.shell.magics_manager.magics["line"].pop(NAME, None)
        completers = self.shell.strdispatchers.get("complete_command")
        if completers is not None:
            completers.strs.pop(f"%{NAME}", None)

    def _run(self, arguments: Namespace, unknown: list[str]) -> None:
        """Run one line of the magic.

        Raises
        ------
        UsageError
            If the line is not understood; the message names the next step.
        """
        verb, *rest = arguments.words or ["show"]
        name = " ".join(rest).strip()
        if verb not in VERBS:
            near = difflib.get_close_matches(verb, VERBS, 1)
            hint = f" Did you mean `%graphwidget {near[0]}`?" if near else ""
            raise _usage(f"There is no `%graphwidget {verb}`.{hint}\n{USAGE}")
        if verb == "code":
            return self._code([*rest, *unknown])
        options = [RETAIN] * arguments.retain_graph
        options += [PRESENT] * arguments.present + [NO_PRESENT] * arguments.no_present + unknown
        if verb not in TAKES_MORE and (name or (options and verb != "show")):
            more = " ".join(filter(None, [name, *options]))
            raise _usage(f"`%graphwidget {verb}` takes nothing more, but got `{more}`.\n{USAGE}")
        known = (RETAIN,) if verb in RETAINS else (PRESENT, NO_PRESENT) if verb == "show" else ()
        for option in options:
            if option not in known:
                near = difflib.get_close_matches(option, known, 1)
                raise _usage(f"There is no option `{option}`. " + (f"Did you mean `{near[0]}`?" if near else USAGE))
        if verb in ("forecast", "steps"):
            getattr(self, f"_{verb}")(name, retain=arguments.retain_graph)
        elif verb == "show":
            if arguments.present and arguments.no_present:
                raise _usage(f"Either {PRESENT} or {NO_PRESENT}.")
            self._show(presenting=True if arguments.present else False if arguments.no_present else None)
        elif verb == "predict":
            self._predict(rest, retain=arguments.retain_graph)
        else:
            getattr(self, f"_{verb}")(*((name,) if verb in TAKES_MORE else ()))

    def complete(self, _shell: Any, event: Any) -> list[str]:
        """Words for the tab key. Never raises."""
        words = event.line.split()
        position = len(words) - (0 if event.line.endswith(" ") else 1)
        if position <= 1:
            return list(VERBS)
        if words[1] in RETAINS:
            return [*self._names(), RETAIN]
        if words[1] == "show":
            return [PRESENT, NO_PRESENT]
        if words[1] == "try":
            findings = self.extension.tracker.findings()[:1]
            return [str(n) for one in findings for n, fix in enumerate(one.fixes, 1) if fix.by_machine]
        if words[1] == "notes":
            return ["on", "off"]
        return self._names() if words[1] in ("explain", "nan") else []

    # -- the verbs -------------------------------------------------------------------------------------

    def _show(self, presenting: bool | None) -> None:
        from IPython.display import display

        from graphwidget.notebook.views.display import Standing

        view = self.extension.shared_view()
        if presenting is not None:
            view.presenting = presenting
        self._standing = self._standing or Standing()
        self._standing.follow(display(view, display_id=True), view, self.extension.tracker)

    def _open(self, name: str) -> None:
        from IPython.display import display

        from graphwidget.record.problems import UnreadableRecord
        from graphwidget.record.run_record import load

        if not name:
            raise _usage("Which file? `%graphwidget open FILE.gwz`.")
        try:
            display(load(os.path.expanduser(name.strip("\"'"))).view())
        except UnreadableRecord as error:
            raise _usage(str(error)) from None

    def _on(self) -> None:
        self.extension.switch_on()
        print("graphwidget is recording.")

    def _off(self) -> None:
        self.extension.switch_off()
        print("graphwidget records nothing more. `%graphwidget on` goes on.")

    def _reset(self) -> None:
        self.extension.reset()
        print("graphwidget has forgotten what happened so far.")

    def _notes(self, switch: str) -> None:
        if switch not in ("on", "off"):
            raise _usage(f"`%graphwidget notes on` or `%graphwidget notes off`, not `{switch}`.")
        self.extension.tracker.notes = switch == "on"
        print(f"Errors are {'explained' if switch == 'on' else 'no longer explained'} under their traceback.")

    def _code(self, names: list[str]) -> None:
        """Add or leave out code of the user's own, and say what is."""
        tracker = self.extension.tracker
        for name in names:
            if name[:1] not in "+-":
                raise _usage(f"`%graphwidget code +{name}` adds it, `%graphwidget code -{name}` leaves it out.")
        try:
            tracker.code(*in_and_out(names))
        except ValueError as error:
            raise _usage(str(error)) from None
        print(tracker.own_code)

    def _try(self, which: str) -> None:
        """Say which cells run again, run them, and print what came of it; without a number, list the fixes."""
        from graphwidget.notebook.trying import CannotTry

        trying = self.extension.trying
        findings = trying.shown(self.extension.tracker.findings())
        choices = {
            f"{m}.{n}": (finding, fix)
            for m, finding in enumerate(findings, 1)
            for n, fix in enumerate(finding.fixes, 1)
            if fix.by_machine
        }
        if not which:
            said = [f"%graphwidget try {name.removeprefix('1.')}: {fix.text}" for name, (_, fix) in choices.items()]
            print("\n".join(said) or "There is no fix that could be tried.")
            return
        found = choices.get(which if "." in which else f"1.{which}")
        if found is None:
            names = ", ".join(name.removeprefix("1.") for name in choices) or "none"
            raise _usage(f"There is no fix `{which}` that could be tried. Those that can: {names}.")
        try:
            plan = trying.plan(*found)
        except CannotTry as why:
            raise _usage(str(why)) from None
        print(plan.fix.text, *plan.lines, "Interrupt the kernel to cancel.", sep="\n", flush=True)
        tried = trying.run(plan)
        print(tried.sentence)
        if self.extension.view is not None:
            self.extension.view.refresh()

    def _text(self) -> None:
        from graphwidget.render import text

        print(text.picture(replace(self.extension.tracker.drawing(), busy=None)))

    def _svg(self) -> None:
        from IPython.display import SVG, display

        from graphwidget.render import picture

        display(SVG(picture.to_svg(self.extension.tracker.drawing())))

    def _explain(self, name: str) -> None:
        from graphwidget import api
        from graphwidget.diagnosis.verdict import verdict
        from graphwidget.render.report import finding_lines, verdict_lines

        found = self.extension.with_trials(api.explain(self._tensor(name)) if name else api.explain())
        lines = [line for finding in found for line in finding_lines(finding)]
        if not name:
            lines += verdict_lines(verdict(self.extension.tracker.record(), found))
        elif not found:
            lines.append(f"No finding about `{name}`.")
        print("\n".join(lines))

    def _forecast(self, name: str, *, retain: bool) -> None:
        from graphwidget import api
        from graphwidget.render.text import forecast_lines

        if not name:
            raise _usage(f"Which tensor? `%graphwidget forecast NAME`. {self._hint('')}")
        option = "retain_graph=True" if retain else ""
        answer = api.forecast(self._tensor(name), retain_graph=retain, gradient=False)
        print("\n".join(forecast_lines(f"{name}.backward({option})", answer)))

    def _steps(self, name: str, *, retain: bool) -> None:
        from graphwidget import api

        calls = self.extension.tracker.calls
        if name.isdecimal():
            call = next((call for call in calls if call.n == int(name) - 1), None)
            if call is None:
                known = ", ".join(str(call.n + 1) for call in calls[-_MOST_CALLS:]) or "none"
                raise _usage(f"Call {name} is not remembered. Calls that are: {known}.")
            print(api.steps(call))
        elif name:
            print(api.steps(self._tensor(name), retain_graph=retain or None, gradient=False))
        else:
            raise _usage(f"Of which call? `%graphwidget steps NAME`, or `%graphwidget steps N`. {self._hint('')}")

    def _nan(self, name: str) -> None:
        from graphwidget.replay import find_nan

        if not name:
            raise _usage(f"Below which tensor? `%graphwidget nan NAME`. {self._hint('')}")
        print(find_nan(self._tensor(name)))

    def _predict(self, words: list[str], *, retain: bool) -> None:
        from graphwidget import api

        name = " ".join(word for word in words if not _ANSWER.fullmatch(word)).strip()
        said = {match[1]: match[2] for word in words if (match := _ANSWER.fullmatch(word))}
        if not name:
            raise _usage(f"Of which tensor? `%graphwidget predict NAME`. {self._hint('')}")
        fails, frees = said.get("fails"), said.get("frees")
        try:
            prediction = api.predict(
                self._tensor(name),
                fails=_FAILS.get(fails, fails) if fails is not None else None,
                frees=list(filter(None, frees.split(","))) if frees is not None else None,
                retain_graph=retain or None,
            )
        except ValueError as error:
            raise _usage(str(error)) from None
        print(prediction.explain())
        if prediction.answers:
            print(prediction)
        else:
            print(f"Answer with `%graphwidget predict {name} fails=no frees=SLOT,SLOT`, or in Python with")
            print(f'`graphwidget.predict({name}, fails=False, frees=["SLOT", "SLOT"])`. Nothing has run.')

    # -- names -----------------------------------------------------------------------------------------

    def _tensor(self, name: str) -> Any:
        """The tensor at a path: looked up among the tensors found, never evaluated."""
        import torch

        value = self.shell.user_ns.get(name)
        if value is None:
            value = self.extension.search().tensor_at(name)
        if value is None:
            raise _usage(f"There is no tensor `{name}`. {self._hint(name)}")
        if not isinstance(value, torch.Tensor):
            raise _usage(f"`{name}` is of type {type(value).__name__}, not a tensor. {self._hint(name)}")
        if not value.requires_grad:
            from graphwidget.arguments import no_grad_reason

            raise _usage(f"`{name}`: {no_grad_reason(value)}")
        return value

    def _names(self) -> list[str]:
        return [holding.path for holding in self.extension.search().holdings if not holding.is_leaf]

    def _hint(self, name: str) -> str:
        names = self._names()
        near = difflib.get_close_matches(name, names, 3, 0.5) or names[:3]
        return f"There is: {', '.join(near)}." if near else "No variable holds a graph: run the forward pass first."


def _usage(message: str) -> Exception:
    """IPython prints it without a traceback."""
    from IPython.core.error import UsageError

    return UsageError(message)
