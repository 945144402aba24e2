"""What was measured while the program ran: at errors, at optimizer steps, where values left the graph."""
