"""What transforms of functions refuse: `vmap`, `grad`, `jvp` and their kin."""
