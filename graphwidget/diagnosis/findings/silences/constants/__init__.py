"""Parts of a loss that are constants: they change its value, and no step goes by them."""
