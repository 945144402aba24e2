"""What a person can do about a finding: `FIX_IDS`, all kinds of change; `FIXES`, which of them to try first.

A fix for a second backward is a file of `second_backward` with a function ``propose(case)``, which returns a `Fix`, or
None where the fix makes no sense. Its place in the order is its place in the ladder below. Fixes for the other kinds of
finding follow from the cause of the finding, and are built where that is found: for writes in place and for graphs
that pile up in this folder, for the others in `graphwidget.diagnosis.findings` and `graphwidget.diagnosis.no_graph`.
"""

from __future__ import annotations

from graphwidget.diagnosis.fixes.second_backward import (
    clear,
    create_graph,
    detach,
    parameter,
    recompute,
    remove_call,
    rerun_cell,
    retain,
    sum_losses,
)
from graphwidget.diagnosis.fixes.second_backward.ladder import Ladder, Rung, only_if

__all__ = ["CHOICES", "FIXES", "FIX_IDS"]

FIX_IDS = {
    # the graph of an earlier call was reused
    "retain_graph_earlier_call": "keep the graph with `retain_graph=True`",
    "recompute_in_loop": "run the forward part again",
    "detach": "cut the graph at a tensor",
    "single_backward_sum": "run backward once, on a sum",
    "clear_buffer": "empty a container of old tensors",
    "create_graph": "build a graph for a gradient, too",
    "rerun_forward_cell": "run a cell again before this one",
    "remove_duplicate_call": "leave out the second call",
    "bind_now": "give a function the values of now",
    # a saved tensor was modified in place
    "make_mapped": "make the tensor from one that `vmap` maps over",
    "out_of_place": "make a new tensor in place of writing to an old one",
    "clone_before_inplace": "write to a copy, or read from one",
    "zero_grad_or_step_order": "move a step or a `zero_grad`",
    "single_views": "take views of a tensor one by one",
    "under_no_grad": "write under `torch.no_grad()`",
    "plain_buffer": "make what is filled without `requires_grad=True`",
    # no graph, or no gradient
    "unfreeze": "let a tensor require grad",
    "restore_requires_grad": "let parameters require grad again that a line has frozen",
    "freeze": "let a tensor, or the parameters of a module, require no grad",
    "save_less": "let one graph save less",
    "remove_no_grad": "take code out of `torch.no_grad()`, or the like",
    "differentiable_op": "use an operation that has a derivative",
    "fixed_sample": "score a sample that does not move with the parameters",
    "find_the_cut": "look for the line that cut the graph",
    "keep_a_graph": "make a loss that is zero of what has a graph",
    "skip_the_call": "leave out a backward on what has no graph",
    "use_the_new_head": "set a new module under the name that is called, or use it",
    "use_the_output": "compute the loss from what the model returns",
    "use_reentrant_false": "checkpoint without reentrance",
    "input_requires_grad": "let the input of a checkpoint, or of a frozen model, require grad",
    "require_grad_sooner": "let an input require grad before it is used",
    "pass_parameters": "pass the parameters that a custom Function computes with",
    "retain_grad": "ask for the `.grad` of a computed tensor",
    "allow_unused": "accept that an input gets no gradient",
    "differentiate_the_whole": "ask for the gradient of what a part was taken from",
    "differentiate_some": "ask only for gradients of what requires grad",
    "use_input": "compute the loss from the input",
    "run_backward": "run backward before `.grad` is read",
    "clear_if_there": "clear a `.grad` only if it is not None",
    "skip_none": "leave out parameters whose `.grad` is None",
    "new_optimizer": "make the optimizer from the parameters that are trained",
    "restore_the_mode": "leave grad mode as it was before, by a block",
    "no_grad_or_item": "compute under `torch.no_grad()`, or take a number",
    "float_dtype": "use a floating-point type",
    "scalar_loss": "reduce the loss to one number",
    "pass_gradient": "pass a gradient to `backward`",
    "drop_gradient": "pass no gradient to `backward`",
    "today_s_name": "call it what it is called today",
    "leaf": "use a leaf in place of a computed tensor",
    "copy_weights": "copy the weights of a module, without its graph",
    "forward_under_no_grad": "run a module once under `torch.no_grad()`, so that what its hooks compute has no graph",
    "remove_reparametrization": "make a parameter again of what a hook of a module computes",
    "hook_on_the_tensor": "hook a tensor in place of a module",
    "register_sooner": "register a hook before what it is to wait for is computed",
    # a checkpoint, or DistributedDataParallel
    "pure_function": "compute from the arguments alone",
    "no_checkpoint": "run a function without a checkpoint",
    "find_unused_parameters": "let DistributedDataParallel look for what took no part",
    "use_every_parameter": "use a module in the loss, or do not make it",
    "read_saved_once": "read saved tensors once",
    "static_graph": "tell DistributedDataParallel that each pass builds the same graph",
    # hooks, gradients of another kind, and transforms of functions
    "give_back_as_saved": "let a hook give back a saved tensor as it was",
    "mend_the_code": "mend code of the program's own that a backward runs",
    "finite_gradient": "keep a gradient finite",
    "dense_gradient": "make a gradient dense",
    "sparse_optimizer": "use an optimizer that takes sparse gradients",
    "say_randomness": "say what random numbers are to be under `vmap`",
    "without_running_statistics": "let batch norms keep no running statistics",
    "fitting_dims": "say over which dimensions `vmap` maps",
    "transform_instead": "transform a function in place of calling the engine in it",
    "rule_of_the_function": "give a custom Function a rule for a transform",
    # a custom Function
    "return_all_gradients": "return one gradient, or None, for each input",
    "full_backward_hook": "hook a module, not its last operation",
    "return_nothing": "let a hook return nothing",
    "matching_gradient": "return a gradient that is like its input",
    "static_methods": "write a Function with static methods",
    "define_backward": "write a backward",
    "differentiable_backward": "let a backward be differentiated",
    "mark_dirty": "say what a forward modifies",
    "save_for_backward": "save tensors by `save_for_backward`",
    "save_the_input": "compute in a backward, from what the forward was given, what has to have a derivative",
    # a training loop
    "training_mode": "put a model back into training mode",
    "register_modules": "put modules into a container of torch's",
    "clear_gradients": "clear gradients after a step",
    "clip_after_backward": "clip gradients that are there",
    "clip_after_unscale": "clip gradients of the loss itself",
    "keep_in_a_list": "keep in a list what is read twice",
    "write_in_place": "write to a parameter in place of a new tensor",
    "call_it": "call a method that is only named",
    "straight_through": "pass a gradient straight through",
    "reparametrize": "draw in a way that has a derivative",
    "sigmoid": "use a sigmoid for a single score",
    # graphs pile up
    "del_variable": "let go of a variable",
    "set_grad_none": "set a `.grad` to None",
    "autograd_grad_instead": "use `torch.autograd.grad`, which writes no `.grad`",
    "remove_hook": "remove a hook that each pass registers anew",
    "keep_numbers": "keep a record of values in place of an object that has graphs",
    "no_display": "do not display a tensor that has a graph",
    "clear_last_traceback": "let go of the last traceback",
}

# Of these, what changes the meaning of a program: what trains, what a gradient is, or what counts as an error. That the
# program then runs does not show that it is right.
CHOICES = frozenset(
    {
        "allow_unused",
        "differentiable_backward",
        "drop_gradient",
        "fixed_sample",
        "freeze",
        "matching_gradient",
        "new_optimizer",
        "reparametrize",
        "restore_requires_grad",
        "return_all_gradients",
        "sigmoid",
        "skip_none",
        "skip_the_call",
        "straight_through",
        "unfreeze",
        "use_every_parameter",
    }
)

# The later call runs the same tensor again, or one inside the old part.
_SAME_ROOT: Ladder = (
    Rung(
        lambda case: case.setting.same_cell_again,
        (rerun_cell.propose, retain.propose),
        "A cell that is run again by hand misses the run of the cell before it.",
    ),
    Rung(
        lambda case: case.setting.called_by_callee,
        (remove_call.propose, recompute.propose),
        "The called function has run this backward: with the graph kept, the second call would add the same once more.",
    ),
    Rung(
        lambda case: case.stepped,
        (sum_losses.in_loop, recompute.propose, remove_call.propose),
        "After a step the kept graph would hold the old weights.",
    ),
    Rung(
        lambda case: case.setting.in_loop,
        (sum_losses.in_loop, recompute.propose, retain.propose),
        "In a loop each pass wants a graph of its own.",
    ),
    Rung(
        lambda case: case.reuse.earlier.place.run == case.reuse.later.place.run,
        (retain.propose, recompute.propose, remove_call.propose),
        "Two calls of one cell without a step are meant, unless one was left over.",
    ),
    Rung(
        lambda case: True,
        (retain.propose, recompute.propose),
        "Calls of two cells are both meant.",
    ),
)

# Both losses existed when the earlier call began: they share a part on purpose, or by oversight.
_BUILT_BEFORE: Ladder = (
    Rung(
        lambda case: case.stepped,
        (detach.propose, sum_losses.in_loop, recompute.propose),
        "The step has changed the weights of the shared part: the later loss must not go back through it.",
    ),
    Rung(
        lambda case: True,
        (sum_losses.propose, retain.propose, detach.propose),
        "Two losses of one graph have the same gradients as their sum, which costs no memory.",
    ),
)

# The later loss was built after the earlier call, on something that this call had run.
_BUILT_AFTER: Ladder = (
    Rung(
        lambda case: bool(case.computed_parameters),
        (parameter.propose,),
        "What was computed from a parameter once, and kept in its place, was to be the parameter.",
    ),
    Rung(
        lambda case: (
            (bool(case.reuse.exclusive_leaves) or case.all_comes_from_one_container)
            and clear.makes_sense(case)
            and not case.drawn_at_random
        ),
        (clear.propose,),
        "A buffer that is filled again was not emptied.",
    ),
    Rung(
        lambda case: case.in_closure and bool(case.reuse.starved),
        (recompute.propose, detach.propose),
        "An optimizer calls its closure several times in a step, and each time with other weights.",
    ),
    Rung(
        clear.keeps_old_terms,
        (clear.propose, detach.propose),
        "Old elements of a list that are only added to the loss have no effect on any gradient.",
    ),
    Rung(
        lambda case: case.stepped and case.setting.only_added,
        (recompute.propose,),
        "A term of the loss that is detached no longer counts.",
    ),
    Rung(
        lambda case: case.setting.carried_state and case.setting.made_in_same_pass,
        (detach.propose,),
        "A state that each pass updates is cut between passes; it cannot be computed again.",
    ),
    Rung(
        lambda case: case.setting.carried_state,
        (detach.propose, recompute.propose),
        "A state that a re-run cell updates is cut between runs, or begun again.",
    ),
    Rung(
        lambda case: case.stays_at_its_first_value,
        (recompute.propose, detach.propose),
        "What was computed once of what each pass trains is out of date: detached, it would stay at its first value.",
    ),
    Rung(
        lambda case: case.weighs_the_passes,
        (detach.propose, recompute.propose),
        "What was made before a loop, and weighs what each pass makes, is a constant of the passes.",
    ),
    Rung(
        lambda case: case.filled_before_the_passes,
        (detach.propose, recompute.propose),
        "What was stored before the loop is data of its passes, which compute the same anew.",
    ),
    Rung(
        lambda case: not case.reuse.starved and case.setting.made_in_same_pass,
        (recompute.propose, recompute.or_cut),
        "What one pass made and later passes use is a cache: each pass should compute it.",
    ),
    Rung(
        lambda case: case.other_step_trains_the_old_part and detach.in_earlier_call(case) is not None,
        (detach.in_earlier_call, recompute.propose),
        "The step was for other weights than those of the old part: the earlier call should not have run it.",
    ),
    Rung(
        lambda case: not case.reuse.starved and case.stepped,
        (detach.propose, recompute.propose),
        "A cut takes no gradient from anything that a step changes.",
    ),
    Rung(
        lambda case: case.is_for_another_optimizer,
        (detach.propose, recompute.propose),
        "The old part has been trained, and the later call is for what another optimizer holds.",
    ),
    Rung(
        lambda case: case.not_for_the_old_part,
        (detach.propose, recompute.propose),
        "The loop trains other weights, and no step uses what it gives to those of the old part.",
    ),
    Rung(
        lambda case: case.stepped and not case.reuse.steps_modified_the_old_part and not case.setting.repeated,
        (detach.in_earlier_call, recompute.propose),
        "The step was for other weights than those of the old part: the earlier call should not have run it.",
    ),
    Rung(
        lambda case: case.stepped and case.setting.same_cell_again and not case.setting.repeated,
        (rerun_cell.propose, recompute.propose, detach.propose),
        "A cell that is run again by hand misses the run of the cell before it.",
    ),
    Rung(
        lambda case: case.stepped,
        (recompute.propose, recompute.or_cut),
        "After a step the old part is out of date, and a cut would take gradients from it.",
    ),
    Rung(
        lambda case: case.setting.repeated and case.reuse.brings_leaves,
        (sum_losses.in_loop, recompute.propose, retain.propose, detach.propose),
        "Each pass wants a graph of its own, before anything is kept or cut.",
    ),
    Rung(
        sum_losses.one_step_for_all,
        (sum_losses.in_loop, retain.propose, sum_losses.beside, recompute.propose, detach.propose),
        "One step uses the gradients of all: those of the sum are the same.",
    ),
    Rung(
        lambda case: case.setting.same_cell_again,
        (rerun_cell.propose, retain.propose, sum_losses.in_loop, recompute.propose, detach.propose),
        "A cell that is run again by hand misses the run of the cell before it.",
    ),
    Rung(
        lambda case: True,
        (retain.propose, sum_losses.in_loop, recompute.propose, detach.propose),
        "Without a step the old part is still right: keep it, before it is built again or cut.",
    ),
)


# Per kind of finding, the fixes in the order in which a person should try them.
FIXES: dict[str, Ladder] = {
    "second_backward": (
        Rung(
            lambda case: case.setting.grad_used and not case.setting.carried_state,
            (create_graph.propose,),
            "A loss of a gradient needs the graph of that gradient: if only the rest is kept, only the rest trains.",
        ),
        *only_if(
            lambda case: case.reuse.same_root or (case.setting.called_by_callee and case.reuse.same_call), _SAME_ROOT
        ),
        Rung(
            lambda case: case.runs_a_term_first and remove_call.of_a_term(case) is not None,
            (remove_call.of_a_term, retain.propose),
            "The gradient of a term is in that of the sum: run alone before, it counts twice, or is cleared.",
        ),
        *only_if(lambda case: not case.reuse.built_after, _BUILT_BEFORE),
        *_BUILT_AFTER,
    ),
}
