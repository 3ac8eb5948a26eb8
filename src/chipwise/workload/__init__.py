"""What to compute: configuration -> model -> graph of operators on named axes, with counts and caches."""
