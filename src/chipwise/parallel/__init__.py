"""Many chips: a layout cuts axes, which gives the operators and exchanges of one rank, and its memory account."""
