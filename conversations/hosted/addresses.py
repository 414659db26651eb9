"""Where a tool may be: nothing private is reached by a name, an encoding, an answer of DNS or a redirect.

An address is looked up once, judged, and then dialled as it is: a second lookup could answer differently.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from fnmatch import fnmatchcase

import httpx
from msgspec import Struct

from conversations.hosted.values import ToolFailed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

LOOKUP_SECONDS = 5.0
PORTS = {"http": 80, "https": 443}
# Reached by everything that runs in some clouds, and public by its number.
METADATA = frozenset({ipaddress.ip_address("168.63.129.16"), ipaddress.ip_address("fd00:ec2::254")})
LOOPBACK_NAMES = frozenset({"localhost"})
NAT64 = ipaddress.ip_network("64:ff9b::/96")
LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")


class Pinned(Struct, frozen=True):
    """A URL that may be called, and the address to dial for it."""

    url: httpx.URL
    address: str


class Allowed:
    """BRIDGE_TOOL_HOSTS: hosts (`api.example.com`, `*.example.com`), and addresses or networks that are not public.

    Without any, every public host is allowed over https. A name never opens what is not public; naming the address (or
    localhost) does, except for link-local and metadata addresses, which are nobody's tool.
    """

    def __init__(self, named: Iterable[str]) -> None:
        self._patterns: set[str] = set()
        self._networks: list[Network] = []
        for item in named:
            try:
                self._networks.append(ipaddress.ip_network(item.strip("[]"), strict=False))
            except ValueError:
                self._patterns.add(item.lower().rstrip("."))
        if self._patterns & LOOPBACK_NAMES:
            self._networks += [ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1")]
        self._any = not self._patterns and not self._networks

    async def pin(self, url: str) -> Pinned:
        """Raises ToolFailed for what may not be reached. The text names the host, not what it resolved to."""
        parsed = self._parsed(url)
        host = parsed.host.lower().rstrip(".")
        port = parsed.port or PORTS[parsed.scheme]
        addresses = await _lookup(host, port)
        named = any(fnmatchcase(host, pattern) for pattern in self._patterns)
        if not self._any and not named and not (addresses and all(self._opened(address) for address in addresses)):
            raise ToolFailed("refused", f"the host {host} is not one that tools may reach")
        for address in addresses:
            if not self._reachable(address):
                raise ToolFailed("refused", f"the host {host} is not on the public internet")
        if parsed.scheme != "https" and host not in self._patterns and not self._opened(addresses[0]):
            raise ToolFailed("refused", f"tools are called over https, and {host} is not a host that may do without")
        return Pinned(parsed, str(addresses[0]))

    def _parsed(self, url: str) -> httpx.URL:
        try:
            parsed = httpx.URL(url)
            host = parsed.host  # may be no name that IDNA knows
        except (httpx.InvalidURL, ValueError, UnicodeError):
            raise ToolFailed("refused", "the tool's address is not a URL") from None
        if parsed.scheme not in PORTS:
            raise ToolFailed("refused", f"the scheme {parsed.scheme[:20]!r} is not http or https")
        if not host:
            raise ToolFailed("refused", "the tool's address names no host")
        if "%" in host:  # may not resolve now and may later: only link-local addresses have zones
            raise ToolFailed("refused", "the tool's address names a network interface")
        if parsed.userinfo:
            raise ToolFailed("refused", "the tool's address holds a user name or password")
        return parsed

    def _opened(self, address: Address) -> bool:
        return any(address.version == network.version and address in network for network in self._networks)

    def _reachable(self, address: Address) -> bool:
        inner = unwrapped(address)
        if is_public(inner):
            return True
        never = inner.is_link_local or inner.is_multicast or inner.is_unspecified or inner in METADATA
        return inner is address and not never and self._opened(inner)


def is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and (address.is_site_local or address in LOCAL_NAT64):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved and address not in METADATA


def unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one carries (mapped, compatible, NAT64, 6to4, Teredo): that is where it leads."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if address in NAT64 or (int(address) >> 32 == 0 and int(address) > 0xFFFF):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


async def _lookup(host: str, port: int) -> list[Address]:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(LOOKUP_SECONDS):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise ToolFailed("unreachable", f"the name {host} could not be looked up in time") from None
    except (OSError, UnicodeError, OverflowError):
        raise ToolFailed("unreachable", f"the name {host} could not be looked up") from None
    addresses = [_literal(str(entry[4][0])) for entry in found]
    return [address for address in addresses if address is not None]


def _literal(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
