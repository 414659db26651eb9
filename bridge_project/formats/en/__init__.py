"""English: as in logs, so that they can be compared with them."""
