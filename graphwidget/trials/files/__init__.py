"""Files that a program writes: what it left, and how all is put back that a trial of it has changed.

Python tells of each file before it is touched (`events`). In a trial's process what is there is copied before that, and
noted in a journal (`keeping`). When the process has ended, in whatever way, the journal is undone from its end to its
beginning (`undoing`). What compiled code other than torch's writes is only seen afterwards, by times of files (`left`).
"""
