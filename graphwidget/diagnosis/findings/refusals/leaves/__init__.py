"""Writes to leaves that require grad: values that are edited, and buffers that are filled."""
