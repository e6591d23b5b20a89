"""Every value, to the bit: `docs/numerics.md` is the contract, this package one implementation of it."""
