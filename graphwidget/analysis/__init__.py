"""Pure functions of snapshots: what a call would do, what is shared, who is to blame, what helps."""
