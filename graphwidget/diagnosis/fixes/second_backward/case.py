"""A failed call that needs a fix: the reuse behind it, and simulations that the fixes share, each run once."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from functools import cached_property

from graphwidget.diagnosis.fixes.cuts.cut import Cut
from graphwidget.diagnosis.fixes.rerun import made_once
from graphwidget.diagnosis.fixes.rerun.plan import Rerun, rerun
from graphwidget.diagnosis.reuse.inside_function import inside_function
from graphwidget.diagnosis.reuse.named_edges import NamedEdges
from graphwidget.diagnosis.reuse.next_steps import drops_the_gradients, is_for_another_optimizer
from graphwidget.diagnosis.reuse.passes.filled_before import filled_before
from graphwidget.diagnosis.reuse.reuse import Reuse
from graphwidget.diagnosis.reuse.setting import Setting, is_added
from graphwidget.diagnosis.source import containers, syntax
from graphwidget.diagnosis.source.paths import local, root_of
from graphwidget.diagnosis.source.pytorch.made_parameters import as_parameter, computed_from
from graphwidget.diagnosis.wording import at
from graphwidget.engine import forecast as engine
from graphwidget.engine.what_if import anything_stale, bytes_held, cut, reachable, with_nodes_held, with_nothing_stale
from graphwidget.model import BackwardCall, Forecast, Place, Snapshot
from graphwidget.model.views import VIEWS

__all__ = ["Case", "kept_bytes", "simulate"]

_DRAWING = ("sample", "choice", "choices")


def _is_view(node: str) -> bool:
    return node.split("Backward")[0].lower() in VIEWS


def simulate(graph: Snapshot, call: BackwardCall) -> Forecast:
    """The forecast of `call` on `graph`."""
    return engine.forecast(
        graph,
        call.roots,
        inputs=call.inputs,
        retain_graph=call.retain_graph,
        create_graph=call.create_graph,
        api=call.api,
        grad_given=True,
    )


def kept_bytes(reuse: Reuse) -> int:
    """Bytes that the old part would keep if the earlier call had retained the graph."""
    graph, before = reuse.graph, reuse.earlier.graph
    freed = [(i, s) for i in reuse.old for s in graph.slots_of(i) if graph.slot_freed_by[s] == reuse.earlier.n]
    if before is None:
        return sum(graph.slot_bytes[slot] for _, slot in freed)
    # Several nodes may have saved one tensor: `y` in `y = x.exp(); y * y`.
    uids = {graph.uid[index] for index, _ in freed}
    return bytes_held(before, (index for uid in uids if (index := before.index_of.get(uid)) is not None))


class Case:
    """The facts that proposals for a second backward read.

    Attributes
    ----------
    reuse, setting
        The facts of the graph, and those of the program's text.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.reuse = setting.reuse

    @property
    def stepped(self) -> bool:
        """Whether a step between the calls changed leaves: what the old part has saved is out of date."""
        return bool(self.reuse.steps_between)

    @cached_property
    def computed_parameters(self) -> list[tuple[Place, ast.expr, str]]:
        """The lines that made the old part, if each was to give an attribute a parameter: `Parameter(a) * 0.1`.

        Each with its expression, and with the one that makes a parameter of the result.
        """
        graph, found = self.reuse.graph, dict[tuple[int, int], tuple[Place, ast.expr, str]]()
        for index in self.reuse.boundary:
            place = graph.place_of(index)
            spot = at(place)
            text = self.setting.text_of_cell(spot[0]) if spot is not None else ""
            statement = next(reversed(syntax.statements_at(text, spot[1])), None) if spot is not None else None
            value = statement.value if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
            targets = list(syntax.targets(statement)) if isinstance(statement, ast.stmt) else []
            made = computed_from(value) if all(one.startswith("self.") for one in targets) else None
            new = as_parameter(value, made) if value is not None and made is not None else ""
            if place is None or spot is None or value is None or not new:
                return []
            found[spot] = place, value, new
        return list(found.values())

    # whether the later call would succeed

    @cached_property
    def works_if_retained(self) -> bool:
        """Whether it would if the earlier call had retained its graph."""
        return not self._retained_is_stale and self._works_if_held

    @cached_property
    def works_if_line_retains(self) -> bool:
        """Whether it would if all calls of that line had: one for each network of an ensemble, and no step between."""
        line, reuse = at(self.reuse.earlier.place), self.reuse
        calls = [one for one in reuse.record.calls if one.n < reuse.later.n and at(one.place) == line]
        wrote = [w for w in reuse.record.writes if calls and calls[0].n < w.after_calls <= reuse.later.n]
        if line is None or wrote:
            return self.works_if_retained
        graph, ran = reuse.graph, {one.n for one in calls}
        freed = {graph.node_with(slot) for slot, by in enumerate(graph.slot_freed_by) if by in ran}
        return simulate(with_nodes_held(graph, freed | reuse.old), reuse.later).ok is True

    @cached_property
    def works_if_fresh(self) -> bool:
        """Whether it would if the old part had been built again."""
        if not anything_stale(self.reuse.graph):
            return self._works_if_held
        graph = with_nothing_stale(with_nodes_held(self.reuse.graph, self.reuse.old))
        return simulate(graph, self.reuse.later).ok is True

    def works_if_cut(self, made: Cut) -> bool:
        """Whether it would without the edges of a cut, and a gradient would still reach all `inputs`."""
        graph = cut(self.reuse.graph, made.edges)
        detached = set[int]() if made.as_leaves else {self.reuse.graph.edge_to[edge] for edge in made.edges}
        if not made.sure or simulate(graph, self.reuse.later).ok is not True or not self._inputs_stay(graph, detached):
            return False
        left = reachable(graph, self.reuse.root_indices)
        wanted = {ref.node for ref in self.reuse.later.inputs} if self.reuse.later.inputs else set(graph.leaves)
        return bool(left & wanted)

    def works_if_cut_earlier(self, made: Cut) -> bool:
        """Whether it would if the earlier call had freed only what it reaches after a cut."""
        graph, before = self.reuse.graph, self.reuse.earlier.graph
        if before is None:
            return False
        still = reachable(cut(before, made.before), (root.node for root in self.reuse.earlier.roots))
        freed = {before.uid[index] for index in still}
        spared = [index for index in self.reuse.old if graph.uid[index] not in freed]
        return simulate(with_nodes_held(graph, spared), self.reuse.later).ok is True

    @cached_property
    def _works_if_held(self) -> bool:
        return simulate(with_nodes_held(self.reuse.graph, self.reuse.old), self.reuse.later).ok is True

    @cached_property
    def _retained_is_stale(self) -> bool:
        """Whether something that the earlier call freed, and the later one needs, has been modified in place since."""
        reuse = self.reuse
        written = {key for write in reuse.writes_between for key in write.storages}
        before = reuse.earlier.graph or reuse.graph
        needed = {reuse.graph.uid[index] for index in reuse.reached}
        for uid in reuse.earlier.executed:
            index = before.index_of.get(uid) if uid in needed else None
            for slot in before.slots_of(index) if index is not None else ():
                storage = before.slot_storage[slot]
                if storage >= 0 and before.storages.key[storage] in written:
                    return True
        return bool(reuse.steps_between and not reuse.earlier.graph)

    def _inputs_stay(self, graph: Snapshot, detached: Collection[int]) -> bool:
        """Whether all `inputs` of the calls since the earlier one would still require grad.

        Parameters
        ----------
        detached
            Nodes of tensors whose names then lead to the same without a graph.
        """
        leaves = set(graph.leaves)
        for call in self.reuse.record.calls:
            if self.reuse.earlier.n < call.n <= self.reuse.later.n and call.graph is not None:
                uids = (call.graph.uid[ref.node] for ref in call.inputs or () if ref.node >= 0)
                found = (index for uid in uids if (index := graph.index_of.get(uid)) is not None)
                if any(index in detached or leaves.isdisjoint(reachable(graph, [index])) for index in found):
                    return False
        return True

    # what a simulation of one call cannot show

    @cached_property
    def all_comes_from_one_container(self) -> bool:
        """Whether every gradient of the later call goes through elements of the containers that hold the carriers.

        A state is something else: its new elements are computed from the old ones.
        """
        graph, roots = self.reuse.graph, self.reuse.root_indices
        holders = {local(path).split("[", 1)[0] for path in self.reuse.carrier_paths if "[" in path}
        inside = {o.node for o in graph.owners if "[" in o.path and local(o.path).split("[", 1)[0] in holders}
        if not holders or reachable(graph, inside & self.reuse.new) & self.reuse.old:
            return False
        into = [edge for edge, to in enumerate(graph.edge_to) if to in inside]
        return not reachable(cut(graph, into), roots) & set(graph.leaves)

    @cached_property
    def drawn_at_random(self) -> bool:
        """Whether passes draw elements of a container that holds the carriers: ``random.sample(self.memory, 32)``.

        Old elements are met again in any later pass. Once all that a pass draws are old and cut, nothing trains.
        """
        holders = {local(path).split("[", 1)[0].rsplit(".", 1)[-1] for path in self.reuse.carrier_paths if "[" in path}
        if not self.all_comes_from_one_container:
            return False
        nodes = (node for run in self.reuse.record.runs.values() for node in syntax.nodes_of(run.source))
        draws = (n for n in nodes if isinstance(n, ast.Call) and syntax.last_name(ast.unparse(n.func)) in _DRAWING)
        return any(holders & syntax.words_in(argument) for call in draws for argument in call.args)

    @cached_property
    def next_pass_needs_it(self) -> bool:
        """Whether two calls of one loop use what no pass builds again: the next pass needs what the later frees.

        A simulation is of one call. With ``d = D(pool[0])`` in a loop whose `pool` keeps its first element it says that
        retaining is enough, and the next pass raises.
        """
        setting, reuse = self.setting, self.reuse
        a, b, run = reuse.earlier.place, reuse.later.place, setting.run_of(reuse.later.place)
        if run is None or a.run != b.run or b.outer_line is None or a.outer_line in (None, b.outer_line):
            return False
        loop = syntax.loop_at(run.source, b.outer_line)
        if loop is None or not loop.lineno <= (a.outer_line or 0) <= (loop.end_lineno or 0):
            return False
        made_in_loop = syntax.changed(loop) - syntax.grown(loop)
        edges = [one for one in NamedEdges(setting, reuse.graph, reuse.new).all if one.tensor in reuse.boundary]
        names = [name for one in edges for name in one.names]
        if all(self._made_in_its_pass(i, loop) for i in reuse.boundary) and not any(map(self._is_put_in, names)):
            return False
        if any(root_of(name) in made_in_loop for name in names):
            return False
        return any(name.isidentifier() or "[" in name for name in names)

    def _is_put_in(self, name: str) -> bool:
        """Whether a tensor is in a container that gets elements one by one, so that later passes may find it there."""
        holder, bracket, rest = name.partition("[")
        texts = [run.source for run in self.reuse.record.runs.values()]
        return bool(bracket) and any(containers.detached_in(None, text, holder, [f"[{rest}"]) for text in texts)

    def _made_in_its_pass(self, index: int, loop: ast.stmt) -> bool:
        """Whether the pass of a loop that made the later call has made a node, too."""
        made, later = self.reuse.graph.place_of(index), self.reuse.later.place
        if made is None or (made.run, made.iteration) != (later.run, later.iteration) or later.iteration is None:
            return False
        return loop.lineno <= (made.outer_line or 0) <= (loop.end_lineno or 0)

    @cached_property
    def loop_never_ends(self) -> bool:
        """Whether a `while` around both calls tests what no pass changes: without the error it would never end.

        Asked of the text, because a trial answers it only when its time is up, and a note has none: it would offer an
        edit after which the program hangs.
        """
        setting, place = self.setting, self.reuse.later.place
        loop = syntax.loop_at(setting.text_of_cell(place.outer_cell), place.outer_line or 0)
        if not setting.in_loop or not isinstance(loop, ast.While):
            return False
        tested, moved = syntax.names_in(loop.test), syntax.changed(loop) | made_once.taken_from(loop)
        return bool(tested & {root_of(name) for name in self.reuse.carrier_paths}) and not tested & moved

    @cached_property
    def not_for_the_old_part(self) -> bool:
        """Whether a loop steps other weights than those of the old part, and drops the gradients of these."""
        return (
            self.stepped
            and self.setting.repeated
            and not self.reuse.steps_modified_the_old_part
            and drops_the_gradients(self.setting)
        )

    @cached_property
    def is_for_another_optimizer(self) -> bool:
        """Whether the old part has been trained, and the later call trains what another optimizer holds."""
        return self.stepped and is_for_another_optimizer(self.reuse)

    @cached_property
    def in_closure(self) -> bool:
        """Whether both calls run in a function that an optimizer's step calls: it changes weights between them."""
        earlier, later = self.reuse.earlier.place, self.reuse.later.place
        name = (later.function or "").rpartition(".")[2]
        handed = re.compile(rf"\.step\(.*\b{re.escape(name)}\b")
        frames = (earlier.outer_source, *(frame.source for frame in earlier.stack))
        same = (earlier.cell, earlier.line) == (later.cell, later.line)
        return bool(name) and same and any(handed.search(line) for line in frames)

    @cached_property
    def other_step_trains_the_old_part(self) -> bool:
        """Whether an optimizer that has made no step between the calls holds leaves of the old part.

        So the later call is the one that trains them, as a generator's loss trains the generator; the earlier call,
        whose step was for other weights, had no use for the old part.
        """
        if not self.stepped or self.reuse.steps_modified_the_old_part or self.setting.repeated:
            return False
        leaves = (self.reuse.graph.leaves.get(i) for i in reachable(self.reuse.graph, self.reuse.boundary))
        return any(".param_groups[" in path for leaf in leaves if leaf is not None for path in leaf.paths)

    @cached_property
    def weighs_the_passes(self) -> bool:
        """Whether the old part was made before the loop of both calls, and only weighs what each pass makes.

        The loop may be that of a function whose calls are passes of another one. What is trained gets its gradients
        without the old part, too.
        """
        if not (self.stepped and self.setting.in_loop and self.setting.only_weighs) or self.reuse.starved:
            return False
        return not (self.inner.carried_state or self.inner.made_in_same_pass)

    @cached_property
    def filled_before_the_passes(self) -> bool:
        """Whether the old part is what was written into a storage before the loop, and each pass computes its own.

        It does if it uses what is trained there in a module, or by the same operations. A penalty on weights is no such
        use: detached, the storage would leave an encoder to be trained by its penalty alone.
        """
        reuse, graph = self.reuse, self.reuse.graph
        if not self.stepped or reuse.starved or not filled_before(self.setting):
            return False
        now, then = dict[int, set[str]](), dict[int, set[str]]()
        inside, in_modules = reachable(graph, reuse.boundary), set[int]()
        for user in reuse.reached - set(graph.leaves):
            for leaf in set(graph.next(user)) & set(graph.leaves):
                (then if user in inside else now).setdefault(leaf, set()).add(graph.name_of(user))
                if user not in inside and graph.module_of(user) is not None:
                    in_modules.add(leaf)
        return all(not names.isdisjoint(now.get(leaf, ())) for leaf, names in then.items() if leaf not in in_modules)

    @cached_property
    def runs_a_term_first(self) -> bool:
        """Whether the later call runs a sum that has the loss of the earlier one as a term, in the same pass.

        ``kld.backward()``, then ``(bce + kld).backward()``: the gradient of `kld` is in that of the sum.
        """
        reuse, before = self.reuse, self.reuse.earlier.graph
        one_each = len(reuse.earlier.roots) == len(reuse.later.roots) == 1
        plain = reuse.earlier.api == reuse.later.api == "backward" and reuse.earlier.inputs is None
        if before is None or reuse.same_root or self.setting.repeated or self.stepped or not (one_each and plain):
            return False
        term = reuse.graph.index_of.get(before.uid[reuse.earlier.roots[0].node])
        way = reuse.leading_to([term]) - {term} if term is not None else set[int]()
        return bool(way) and all(is_added(reuse.graph, index) for index in way)

    @cached_property
    def stays_at_its_first_value(self) -> bool:
        """Whether the old part was computed once, of leaves alone, and each pass changes all of these by a step.

        Detached, ``self.alpha = self.log_alpha.exp()`` of a constructor stays what it was while `log_alpha` trains.
        The pass may use the leaves for other things, too, as an encoder's weight of which a decoder's is computed. What
        a module computed is another matter: an advantage is a constant of the passes. So is what they compute anew of
        the same leaf: they compare it with what it was.
        """
        reuse = self.reuse
        if not (self.stepped and self.setting.in_loop):
            return False
        if any(one.carried_state or one.made_in_same_pass for one in (self.setting, self.inner)):
            return False
        graph, inside = reuse.graph, reachable(reuse.graph, reuse.boundary)
        by_module = any(graph.module_of(i) is not None for i in inside if i not in graph.leaves)
        if by_module or not self._all_leaves_are_stepped:
            return False
        return reuse.steps_modified_the_old_part or not self._is_computed_anew

    @property
    def is_of_old_weights(self) -> bool:
        """Whether what one pass made stands for what later ones would compute of leaves that steps have changed.

        ``if not hasattr(self, "W_inverse"): self.W_inverse = W.inverse()``: detached, it inverts no weight any more.
        """
        return self.stepped and self._all_leaves_are_stepped and not self._is_computed_anew

    @cached_property
    def _all_leaves_are_stepped(self) -> bool:
        reuse = self.reuse
        inside = reachable(reuse.graph, reuse.boundary)
        leaves = [leaf for index, leaf in reuse.graph.leaves.items() if index in inside]
        return bool(leaves) and all(any(step.is_to(leaf) for step in reuse.steps_between) for leaf in leaves)

    @property
    def _is_computed_anew(self) -> bool:
        """Whether the pass uses a leaf by all the operations by which the old part did: views count as what reads them.

        A layer reads its weight by a transposed view, as the old part may do that a decoder is made of.
        """
        reuse, graph = self.reuse, self.reuse.graph
        inside, leaves = reachable(graph, reuse.boundary), set(graph.leaves)
        users = dict[int, set[int]]()
        for user in reuse.reached - leaves:
            for used in graph.next(user):
                users.setdefault(used, set()).add(user)
        for leaf in inside & leaves:
            found = [*users.get(leaf, ())]
            for user in found:  # it grows
                if _is_view(graph.name_of(user)):
                    found += users.get(user, ())
            reading = [i for i in found if not _is_view(graph.name_of(i))]
            then, now = ({graph.name_of(i) for i in reading if (i in inside) is old} for old in (True, False))
            if then <= now:
                return True
        return False

    @cached_property
    def inner(self) -> Setting:
        """The setting within the call of a function that made both calls, and all that they share; else the setting."""
        return inside_function(self.setting, False) or self.setting

    # plans

    @cached_property
    def rerun(self) -> Rerun | None:
        """How to build the old part again; None: unknown."""
        return rerun(self.setting)
