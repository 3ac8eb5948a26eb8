"""One chip: an operator on a device becomes seconds by resource. Compute, memory and copies; no communication."""
