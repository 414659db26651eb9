"""What keeps the bridge from starting."""


class StartError(Exception):
    """The message is the one line that the operator reads."""
