"""What of PyTorch a text uses: grad modes, optimizers, custom Functions, parameters, and the names for them."""
