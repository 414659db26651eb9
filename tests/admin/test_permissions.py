"""Operators with few permissions: no page leads them to where they get a 403."""

import re
from itertools import chain
from pathlib import Path

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client, RequestFactory
from django.utils import timezone

from conversations.admin import grants
from conversations.models import Conversation, HostedTool, Replay, ToolExecution, UsageEntry

pytestmark = pytest.mark.django_db

MODELS = ("conversation", "turn", "toolmapping", "toolexecution", "usageentry", "apikey", "hostedtool", "replay",
          "toolsecret", "route", "upstream", "learned", "rest", "price", "process")  # fmt: skip
GRANTS = [*((model,) for model in MODELS), ("conversation", "turn"), ("conversation", "content"), MODELS]


def staff(*models: str) -> Client:
    user = User.objects.create_user("few", is_staff=True)
    names = [f"view_{model}" for model in models]
    user.user_permissions.set(Permission.objects.filter(codename__in=names, content_type__app_label="conversations"))
    client = Client()
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    return client


def everything(conversation: Conversation) -> None:
    turn = conversation.turns.get()
    now = timezone.now()
    tool = HostedTool.objects.create(
        name="weather", kind="http", url="https://93.184.215.14/w", owner=conversation.api_key, created_at=now
    )
    ToolExecution.objects.create(
        id=1, api_key=conversation.api_key, conversation=conversation, turn=turn, tool=tool,
        tool_use_id="toolu_hosted", tool_name="weather",
        server_name="toolbridge", created_at=now, status="complete", finished_at=now,
    )  # fmt: skip
    Replay.objects.create(conversation=conversation, turn=turn, target="demo/demo", exact=True, status="complete")


def links(text: str) -> set[str]:
    return {found.replace("&amp;", "&") for found in re.findall(r'(?:href|hx-get)="(/admin/[^"#]*)', text)}


@pytest.mark.parametrize("grants", GRANTS, ids="+".join)
def test_no_link_ends_in_a_refusal(conversation: Conversation, grants: tuple[str, ...]) -> None:
    everything(conversation)
    browser = staff(*grants)
    seen: dict[str, int] = {}
    waiting = {"/admin/", *(f"/admin/conversations/{model}/" for model in grants if model != "content")}
    while waiting and len(seen) < 400:
        address = waiting.pop()
        response = browser.get(address)
        seen[address] = response.status_code
        plain = response.headers["content-type"].startswith("text/html") and response.status_code == 200
        waiting |= {found for found in (links(response.text) if plain else ()) if "logout" not in found} - seen.keys()
    assert {address: status for address, status in seen.items() if status not in (200, 302)} == {}


def test_who_may_only_see_is_offered_no_action(conversation: Conversation) -> None:
    everything(conversation)
    user = User.objects.create_user("sees", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    request = RequestFactory().get("/admin/")
    request.user = user
    offered = {model: list(page.get_actions(request)) for model, page in admin.site._registry.items()}
    assert {model: names for model, names in offered.items() if names} == {}


def test_what_may_not_be_opened_is_told_as_text(conversation: Conversation) -> None:
    everything(conversation)
    turn, entry = conversation.turns.get(), UsageEntry.objects.get()
    browser = staff("conversation", "turn", "usageentry", "content")
    pages = {
        f"conversation/{conversation.pk}/toolchain/": ("tests", "toolu_"),
        f"turn/{turn.pk}/hops/": ("tests", "Bash", "Read"),
        f"conversation/{conversation.pk}/change/": ("tests", "attempts and usage"),
        f"usageentry/{entry.pk}/change/": ("tests", turn.request_id),
    }
    for address, words in pages.items():
        text = browser.get(f"/admin/conversations/{address}").text
        assert words[0] in text
        assert any(word in text for word in words[1:])
        assert not any("/apikey/" in found or "/toolmapping/" in found for found in links(text))
    assert 'href="/admin/conversations/turn/' in browser.get("/admin/").text
    assert "/conversations/rest/" not in "".join(chain(links(browser.get("/admin/").text)))


def test_operators_get_pages_and_clients_get_the_api_s_errors(conversation: Conversation) -> None:
    everything(conversation)
    browser = staff("turn")
    missing, refused = browser.get("/admin/conversations/turn/99/hops/"), browser.get("/admin/conversations/apikey/")
    for page, status, words in ((missing, 404, "no such page"), (refused, 403, "not for you")):
        assert (page.status_code, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert words in page.text
        assert 'href="/admin/conversations/turn/"' in page.text
    assert browser.get("/v1/nothing").json()["error"]["type"] == "not_found_error"


def test_a_page_that_fails_is_no_json(conversation: Conversation, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = staff("turn")
    browser.raise_request_exception = False
    monkeypatch.setattr("conversations.wording.milliseconds", None)
    page = browser.get("/admin/conversations/turn/")
    assert (page.status_code, page.headers["content-type"]) == (500, "text/html; charset=utf-8")


def test_an_operator_is_granted_what_decides_about_something_and_in_words(browser: Client, operator: User) -> None:
    for path in (f"auth/user/{operator.pk}/change/", "auth/group/add/"):
        page = browser.get(f"/admin/{path}").text
        for words in (
            "Conversations: read what was said",
            "Tool calls: forget",
            "Operators: see",
            "Routes: delete",
            "Access attempts: delete",
        ):
            assert f">{words}</option>" in page
        assert "blob" not in page
        assert "Can " not in page


def test_every_permission_that_a_page_asks_for_can_be_granted() -> None:
    asked = re.compile(r"""(?:has_perm\("|perms\.)conversations\.(\w+)|PERMISSION = "conversations\.(\w+)""")
    files = [*Path("conversations").rglob("*.py"), *Path("templates").rglob("*.html")]
    names = {name for file in files for found in asked.findall(file.read_text()) for name in found if name}
    names |= {f"{verb}_{model}" for verb in ("add", "change", "delete", "view") for model in grants.EDITED}
    assert names >= {"view_content", "change_conversation", "add_replay"}
    assert names <= set(grants.grantable().values_list("codename", flat=True))
