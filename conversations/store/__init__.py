"""The hot path's way to the database: one group-committing writer and a few readers per process."""
