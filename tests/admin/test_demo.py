"""`make demo` in small, and what operators see of it."""

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.contrib.auth.hashers import check_password
from playwright.sync_api import Browser
from pytest_django import DjangoDbBlocker

from tests.admin import browser as browsing
from tests.e2e.dialects.providers import NAMES, settings
from tests.servers.bridge import PROJECT, Bridge, clean_environment
from tests.servers.ports import free_port
from tests.servers.records import Records, opened

STORIES = 17  # each once


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "home"


@pytest.fixture(scope="module")
def printed(folder: Path) -> str:
    command = [sys.executable, "-m", "scripts.demo", "--home", str(folder), "--conversations", str(STORIES)]
    done = subprocess.run(
        [*command, "--pace", "0.05"], cwd=PROJECT, env=clean_environment(folder, free_port()), check=True,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def home(folder: Path, printed: str) -> Path:
    return folder


@pytest.fixture(scope="module")
def records(home: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[Records]:
    with django_db_blocker.unblock(), opened("demo", f"sqlite:///{home}/bridge.sqlite3") as found:
        yield found


def test_the_demo_has_something_of_everything(records: Records) -> None:
    conversations, turns, calls = (records.rows(name) for name in ("Conversation", "Turn", "ToolMapping"))
    assert conversations.count() >= STORIES
    assert set(turns.values_list("upstream", flat=True)) >= set(NAMES) - {"minimax-m3"}
    assert set(turns.values_list("status", flat=True)) == {"complete", "error", "aborted"}
    assert {"answered", "failed", "pending"} <= set(calls.values_list("status", flat=True))
    assert conversations.filter(agent_id="agent-API-deep", parent_agent_id="agent-API").exists()
    assert conversations.filter(turn_count__gt=40).exists()
    assert records.rows("Round").exists()
    assert turns.filter(note_count__gt=0).exists()
    assert turns.filter(cost_micros__gt=0).exists()
    # The times are spread, in the order in which things happened.
    began = list(conversations.order_by("created_at").values_list("created_at", flat=True))
    assert (began[-1] - began[0]).total_seconds() > 10 * 3600


def test_the_demo_says_how_to_sign_in(printed: str, home: Path) -> None:
    """Its first start is its own, so nobody would have seen the password that this made."""
    (password,) = re.findall(r"Sign in as admin, password (\S+)\n", printed)
    assert "BRIDGE_INACTIVITY_HOURS=8760 make run" in printed
    with closing(sqlite3.connect(home / "bridge.sqlite3")) as database:
        ((kept,),) = database.execute("SELECT password FROM auth_user WHERE username = 'admin'").fetchall()
    assert check_password(password, kept)


@pytest.fixture(scope="module")
def bridge(home: Path, records: Records) -> Iterator[Bridge]:
    # Nobody is called; but the routes that the turns took are there.
    served = Bridge(home, settings("http://127.0.0.1:9"))
    served.start()
    served.manage("createsuperuser", "--noinput", DJANGO_SUPERUSER_USERNAME=browsing.USER,
                  DJANGO_SUPERUSER_PASSWORD=browsing.PASSWORD, DJANGO_SUPERUSER_EMAIL="o@example.org")  # fmt: skip
    yield served
    served.stop()


@pytest.fixture(scope="module")
def paths(records: Records) -> dict[str, str]:
    """Pages by what they show. Found before the browser's event loop runs, which Django's database refuses."""
    conversations, turns = records.rows("Conversation"), records.rows("Turn")
    session = conversations.get(agent_id="agent-API").session_id
    chains = {
        "chain": conversations.filter(tool_count__gte=5, turn_count__lt=20)[0],
        "family": conversations.get(session_id=session, agent_id=""),
    }
    found = {name: f"/admin/conversations/conversation/{row.pk}/toolchain/" for name, row in chains.items()}
    return found | {"rounds": f"/admin/conversations/turn/{turns.filter(rounds__number=2)[0].pk}/hops/"}


@pytest.fixture(scope="module")
def chromium(paths: dict[str, str]) -> Iterator[Browser]:
    with browsing.chromium() as started:
        yield started


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_serious_barriers(
    chromium: Browser, bridge: Bridge, paths: dict[str, str], scheme: Literal["light", "dark"]
) -> None:
    pages = ["/admin/", paths["chain"], f"{paths['rounds']}?diff=round-2", "/admin/conversations/turn/"]
    if scheme == "light":  # what differs by its colours only in the theme's own parts
        pages += [
            "/admin/connect/",
            paths["chain"].replace("toolchain", "terminate"),
            "/admin/conversations/rest/rest/",
        ]
    found = []
    with browsing.visitor(chromium, bridge, "desktop", scheme) as came:
        for path in pages:
            came.go(path)
            barriers = Axe().run(came.page).response["violations"]
            serious = [barrier for barrier in barriers if barrier["impact"] in ("serious", "critical")]
            found += [(path, barrier["id"], barrier["nodes"][0]["html"][:200]) for barrier in serious]
        assert came.complaints == []
    assert found == []


def test_a_sub_agent_is_opened_in_its_turn_with_the_keyboard(
    chromium: Browser, bridge: Bridge, paths: dict[str, str]
) -> None:
    with browsing.visitor(chromium, bridge) as came:
        page = came.page
        came.go(paths["family"])
        assert page.locator(".tb-agent").count() == 3
        page.locator(".tb-agent > summary", has_text="agent-API").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".tb-nested .tb-call:has-text('Check the indexes')")
        # One level deeper, in the turns that were just loaded.
        page.locator(".tb-nested .tb-agent > summary", has_text="agent-API-deep").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(".tb-nested .tb-nested .tb-call:has-text('Grep')")
        ids = page.eval_on_selector_all("[id]", "found => found.map(each => each.id)")
        assert len(ids) == len(set(ids))
        # Everything that a mouse can do is on the way of the tab key, and can be seen there.
        page.locator("#timeline input[name=q]").focus()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Find"
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
        assert came.complaints == []


def test_the_hops_of_every_round_are_shown(chromium: Browser, bridge: Bridge, paths: dict[str, str]) -> None:
    with browsing.visitor(chromium, bridge) as came:
        came.go(paths["rounds"])
        titles = came.page.locator(".tb-hop h3").all_text_contents()
        assert [title.partition(". ")[2] for title in titles] == [
            "Received", "Sent", "Answered", "Sent, round 2", "Answered, round 2", "Delivered"]  # fmt: skip
        came.page.click("text=Replay this round")
        assert "round 2, byte for byte" in (came.page.text_content("main, #main, body") or "")
        assert came.complaints == []
