"""What optimizers and the scaler of their gradients refuse."""
