"""What is seen at the steps of optimizers, each by a follower of its own."""
