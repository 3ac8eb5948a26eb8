"""Training: step time, memory and what follows from them, for one layout or a million."""
