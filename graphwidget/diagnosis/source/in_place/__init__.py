"""What is modified in place: by which statements, on what no variable holds, and on several views of one tensor."""
