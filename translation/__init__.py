"""The protocol library: values in, values out. No Django, no I/O, no clock, no randomness, no settings."""
