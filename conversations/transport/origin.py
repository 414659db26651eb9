"""Where a request goes: the key of the connection pool."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx

DEFAULT_PORTS = {"http": 80, "https": 443}
NO_EXTENSIONS: Mapping[str, Any] = {}


class Origin(NamedTuple):
    scheme: str
    host: str
    port: int
    connect_to: str | None  # a pinned address: dialled instead of the host, which stays in Host and SNI

    @property
    def address(self) -> str:
        return self.connect_to or self.host


def origin_of(url: httpx.URL, extensions: Mapping[str, Any] = NO_EXTENSIONS) -> Origin:
    scheme = url.scheme
    if scheme not in DEFAULT_PORTS:
        raise httpx.UnsupportedProtocol(f"the url scheme is {scheme!r}, not http or https")
    connect_to = extensions.get("connect_to")
    if connect_to is not None:
        _check_address(connect_to)
    return Origin(scheme, url.raw_host.decode("ascii"), url.port or DEFAULT_PORTS[scheme], connect_to)


def _check_address(connect_to: str) -> None:
    """A name here would be resolved again, which is what pinning is meant to prevent."""
    try:
        ipaddress.ip_address(connect_to)
    except ValueError as error:
        raise httpx.LocalProtocolError(f"connect_to is not an IP address: {connect_to!r}") from error
