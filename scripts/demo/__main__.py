"""`python -m scripts.demo`: a fresh home, a bridge on it, every story told, times spread over the last day."""

import argparse
import os
import secrets
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, cycle, islice
from pathlib import Path

from scripts.demo.session import Session
from scripts.demo.stories import STORIES
from scripts.demo.upstream import Cast
from tests.e2e.dialects.providers import BY_NAME, NAMES, settings
from tests.servers.bridge import Bridge
from tests.servers.client import Client

AT_ONCE = 12
KEYS = ("laptop of Anna", "nightly agents", "support desk")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=Path("var/demo"), help="emptied first")
    parser.add_argument("--conversations", type=int, default=300, help="about so many")
    parser.add_argument("--pace", type=float, default=1.0, help="0: no pauses")
    parser.add_argument("--hours", type=float, default=20.0, help="spread over so much of the past; 0: as it happened")
    given = parser.parse_args(arguments)
    started = time.monotonic()
    home = given.home.resolve()
    if home.exists() and not (home / "demo").exists() and any(home.iterdir()):
        sys.exit(f"{home} holds something that is no demo")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / "demo").touch()
    password = secrets.token_urlsafe(12)
    told = fill(home, given.conversations, given.pace, given.hours, password)
    sys.stdout.write(
        f"{told} stories told in {time.monotonic() - started:.0f} s. To look at them:\n"
        f"  BRIDGE_HOME={given.home} BRIDGE_INACTIVITY_HOURS=8760 make run\n"
        f"Sign in as admin, password {password}\n"
    )


def fill(home: Path, conversations: int, pace: float, hours: float, password: str) -> int:
    with Cast(pace) as cast:
        bridge = Bridge(home, environment(cast) | {"BRIDGE_ADMIN_PASSWORD": password})
        bridge.start()
        try:
            rows = _django(bridge)
            clients = [Client(bridge.url, rows.a_key(name)) for name in KEYS]
            for client in clients:
                _register(client, cast)
            number = _tell(cast, clients, conversations, pace)
        finally:
            bridge.stop()
    rows.spread(hours)
    return number


def environment(cast: Cast) -> dict[str, str]:
    """Of a bridge whose upstreams are all played by the demo."""
    return settings(cast.url) | {
        "BRIDGE_API_KEYS": "",
        "BRIDGE_TOOL_HOSTS": "127.0.0.1",
        "BRIDGE_UPSTREAM_RETRIES": "2",
    }


def _django(bridge: Bridge):  # type: ignore[no-untyped-def]  # a module that needs Django's settings first
    os.environ |= {"BRIDGE_HOME": str(bridge.home), "DJANGO_SETTINGS_MODULE": "bridge_project.settings"}
    import django  # noqa: PLC0415

    django.setup()
    from scripts.demo import rows  # noqa: PLC0415

    return rows


def _register(client: Client, cast: Cast) -> None:
    """The tools that the bridge runs itself."""
    for name, argument, about in (("stock", "sku", "What is in stock."), ("carrier", "parcel", "Where a parcel is.")):
        schema = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
        tool = {"name": name, "url": f"{cast.url}/tools/{name}", "description": about, "input_schema": schema}
        client.http.post("/v1/hosted-tools", json=tool).raise_for_status()


def _tell(cast: Cast, clients: list[Client], conversations: int, pace: float) -> int:
    """Every story once, then by their weights, on every provider in turn."""
    weighed = [name for name, (_, weight) in STORIES.items() for _ in range(weight)]
    plan = list(islice(chain(STORIES, cycle(weighed)), conversations))

    def tell(number: int, name: str) -> None:
        provider = BY_NAME[NAMES[number % len(NAMES)]]
        session = Session(clients[number % len(clients)], cast, f"[T-{number:04d}]", provider.route, pace)
        STORIES[name][0](session, number)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return len(list(pool.map(tell, range(1, len(plan) + 1), plan)))


if __name__ == "__main__":
    main(sys.argv[1:])
