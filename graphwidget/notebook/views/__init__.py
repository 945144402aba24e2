"""The live view: its widget, what stands in the output beside it, and the ways to get one."""
