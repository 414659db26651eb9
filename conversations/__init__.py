"""The one Django app: everything impure."""
