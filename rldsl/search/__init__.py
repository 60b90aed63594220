"""Search: which configuration to try next (`suggest`), and how long to train it (`schedule`)."""
