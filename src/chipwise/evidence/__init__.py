"""How do you know: rows of published measurements, and the interval and basis of every figure."""
