"""What a backward call would do: autograd's engine, simulated on a snapshot."""
