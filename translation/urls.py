"""Addresses of upstreams."""


def join(base_url: str, path: str) -> str:
    """The path below the base URL; a query such as Azure's `?api-version=` stays at the end."""
    base, mark, query = base_url.partition("?")
    return f"{base.rstrip('/')}{path}{mark}{query}"
