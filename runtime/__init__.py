"""The emulated device and what runs on it; imports no compiler."""
