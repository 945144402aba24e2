"""What a checkpoint computes in backward, and computed otherwise in forward."""
