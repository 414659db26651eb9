"""A database full of conversations, made by driving the real API against a scripted upstream: `make demo`."""
