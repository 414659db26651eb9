"""What the files for proxies say, beside what the bridge does: each proxy counts bytes in its own units."""

import asyncio
import re
from typing import Any

import pytest
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from conversations.api.incoming import BODY_LIMIT
from tests.servers.bridge import PROJECT

MEBIBYTE, MEGABYTE = 1024 * 1024, 1_000_000


@pytest.mark.parametrize(
    ("path", "setting", "units"),
    [
        ("nginx.conf", "client_max_body_size", {"m": MEBIBYTE}),
        ("kubernetes/ingress.yaml", "proxy-body-size:", {"m": MEBIBYTE}),
        ("Caddyfile", "max_size", {"MB": MEGABYTE, "MiB": MEBIBYTE}),
    ],
)
def test_a_proxy_takes_as_much_as_the_bridge(path: str, setting: str, units: dict[str, int]) -> None:
    """Beyond that the bridge answers 413 in the API's own words; a proxy has no such words."""
    found = re.search(rf"{setting} (\d+)(\w+)", (PROJECT / "deploy" / path).read_text(encoding="utf-8"))
    assert found is not None
    assert int(found[1]) * units[found[2]] > BODY_LIMIT


@pytest.mark.parametrize(
    ("path", "proxy"), [("compose.yaml", "172.18.0.1"), ("kubernetes/kustomization.yaml", "10.42.0.7")]
)
def test_whoever_signs_in_behind_a_proxy_has_an_address_of_their_own(path: str, proxy: str) -> None:
    """Else ten wrong passwords of anybody's lock the operator out."""
    found = re.search(r"FORWARDED_ALLOW_IPS(?:: |=)(\S+)", (PROJECT / "deploy" / path).read_text(encoding="utf-8"))
    assert found is not None
    assert _caller(found[1], proxy) == "203.0.113.9"
    assert _caller(found[1], "198.51.100.4") == "198.51.100.4", "who is no proxy speaks for nobody else"


def _caller(allowed: str, connected: str) -> str:
    seen: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])

    head = {
        "type": "http",
        "scheme": "http",
        "client": (connected, 1),
        "headers": [(b"x-forwarded-for", b"203.0.113.9")],
    }
    asyncio.run(ProxyHeadersMiddleware(application, allowed)(head, None, None))  # type: ignore[arg-type]  # unused
    return seen[0]
