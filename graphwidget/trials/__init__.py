"""A fix that has been run: the program runs again in a process of its own with the fix in it, and is judged.

A finding's fixes become `candidates`; each gets an edited copy of the program's texts (`copies`), which a child process
runs under the tracker and within limits (`supervised`); what it did is an `Account`, and `judge` compares it with the
account of the run that failed. `trial` does all that for the findings of a program. No file is edited: edited cells
are run from memory, and edited files are read through `overlay` in the child alone. Files that the program writes in
a trial are put back behind it (`files`).
"""
