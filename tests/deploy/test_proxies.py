"""What the files for proxies say, beside what the bridge does: each proxy counts bytes in its own units."""

import re

import pytest

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
