"""Benchmarks: `make bench`, `make profile`. Not part of the product."""
