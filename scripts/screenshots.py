"""`make screenshots`: the main pages with the demo's data, as pictures for the README. `make demo` comes first."""

import argparse
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Browser

from scripts.demo.__main__ import environment
from scripts.demo.upstream import Cast
from tests.admin import browser as browsing
from tests.servers.bridge import PROJECT, Bridge

FOLDER = PROJECT / "docs" / "screenshots"
LIMIT = 150_000  # bytes of one
WIDTH, HEIGHT = 1200, 760
# A turn by words of its answer, or of what its tools were asked.
SAYING = (
    "SELECT conversation_id, turn_id FROM conversations_message WHERE instr(content, ?) ORDER BY depth DESC LIMIT 1"
)


class Shot(NamedTuple):
    name: str
    path: str
    scheme: Literal["light", "dark"] = "light"
    at: str = ""  # what to scroll to
    size: tuple[int, int] = (WIDTH, HEIGHT)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=Path("var/demo"))
    home = parser.parse_args(arguments).home.resolve()
    if not (home / "demo").exists():
        sys.exit(f"{home} holds no demo: run `make demo` first")
    FOLDER.mkdir(parents=True, exist_ok=True)
    large = []
    with served(home) as bridge, browsing.chromium() as browser:
        for shot in shots(home):
            path = FOLDER / f"{shot.name}.png"
            take(browser, bridge, shot, path)
            sys.stdout.write(f"{path.relative_to(PROJECT)}: {path.stat().st_size:,} bytes\n")
            large += [shot.name] if path.stat().st_size > LIMIT else []
    return len(large)


@contextmanager
def served(home: Path) -> Iterator[Bridge]:
    with Cast() as cast:
        # What the demo tells is a day old.
        bridge = Bridge(home, environment(cast) | {"BRIDGE_INACTIVITY_HOURS": "100000"})
        bridge.start()
        try:
            if not operator_exists(home):
                names = {"USERNAME": browsing.USER, "PASSWORD": browsing.PASSWORD, "EMAIL": "o@example.org"}
                given = {f"DJANGO_SUPERUSER_{name}": value for name, value in names.items()}
                bridge.manage("createsuperuser", "--noinput", **given)
            yield bridge
        finally:
            bridge.stop()


def operator_exists(home: Path) -> bool:
    with sqlite3.connect(home / "bridge.sqlite3") as database:
        return bool(database.execute("SELECT 1 FROM auth_user WHERE username = ?", (browsing.USER,)).fetchone())


def shots(home: Path) -> list[Shot]:
    with sqlite3.connect(home / "bridge.sqlite3") as database:

        def saying(words: str) -> tuple[str, str]:
            conversation, turn = database.execute(SAYING, (words.encode(),)).fetchone()
            return f"conversation/{conversation}/toolchain/", f"turn/{turn}/hops/"

        own = "/admin/conversations/"
        return [
            Shot("overview", "/admin/"),
            Shot("toolchain", own + saying("does not exist; I cannot run")[0]),
            Shot("timeline", own + saying("The cards wrap now")[0], at="#timeline"),
            Shot("agents", own + saying("needs one more index")[0], "dark", at="#timeline"),
            Shot("hops", own + saying("changelog is written")[1] + "?diff=received-sent", "dark"),
            Shot("phone", own + saying("All are moved")[0], size=(390, 760)),
        ]


def take(browser: Browser, bridge: Bridge, shot: Shot, path: Path) -> None:
    width, height = shot.size
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=shot.scheme)
    came = browsing.Visitor(context, bridge)
    came.sign_in()
    came.go(shot.path)
    if shot.at:
        came.page.locator(shot.at).evaluate("place => place.scrollIntoView()")
    for agent in came.page.locator(".tb-agent").all()[:1]:
        agent.locator("summary").first.click()
    came.page.wait_for_timeout(1_000)  # what is loaded as it comes into sight
    came.page.screenshot(path=str(path))
    context.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
