"""Many plans: enumerate candidates, price them as arrays, mask what cannot be, choose."""
