"""Put together: passes from operators and exchanges, served workloads from passes."""
