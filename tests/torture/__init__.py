"""The promises under faults, load and malice. Small in the suite, in full size behind `make torture`."""
