"""Upstreams and routes in the admin: keys go in and never come out; every process hears of a change."""

import datetime as dt
import logging
from decimal import Decimal

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from conversations import secrets
from conversations.admin.learned import taught
from conversations.models import Change, Learned, Price, Rest, Route, ToolSecret, Upstream
from conversations.prices import DEFAULTS

pytestmark = pytest.mark.django_db

KEYS = "sk-first-secret\nsk-second-secret"


def upstream_form(**fields: str) -> dict[str, str]:
    return {"name": "work", "provider": "openai", "base_url": "https://models.example/v1", "enabled": "on", **fields}


def route_form(**fields: str) -> dict[str, str]:
    return {
        "pattern": "claude-*",
        "target": "openai/gpt-5.5",
        "priority": "0",
        "stream_upstream": "on",
        "enabled": "on",
        **fields,
    }


def add(browser: Client, model: str, form: dict[str, str]) -> str:
    page = browser.post(f"/admin/conversations/{model}/add/", form)
    return page.text if page.status_code == 200 else ""


def changes() -> int:
    return Change.objects.filter(kind="routes").count()


def test_keys_are_encrypted_and_shown_nowhere(browser: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert add(browser, "upstream", upstream_form(new_keys=KEYS)) == ""
    row = Upstream.objects.get()
    assert (secrets.decrypt(bytes(row.secret)), row.key_count) == (KEYS, 2)
    pages = [
        browser.get(f"/admin/conversations/upstream/{path}").text
        for path in ("", f"{row.pk}/change/", f"{row.pk}/history/")
    ]
    kept = [str(item.__dict__) for item in (*Upstream.objects.all(), *LogEntry.objects.all(), *Change.objects.all())]
    assert not any("-secret" in text for text in (*pages, *kept, caplog.text))
    assert "2, encrypted" in pages[0]
    assert changes() == 1


def test_a_form_with_a_mistake_does_not_show_the_keys_either(browser: Client) -> None:
    page = add(browser, "upstream", upstream_form(name="Not a name!", new_keys=KEYS))
    assert "Lower-case letters" in page
    assert "-secret" not in page
    assert not Upstream.objects.exists()


def test_keys_stay_until_others_are_given_or_they_are_to_be_forgotten(browser: Client) -> None:
    add(browser, "upstream", upstream_form(new_keys=KEYS))
    row = Upstream.objects.get()
    page = f"/admin/conversations/upstream/{row.pk}/change/"
    for form, count in (
        (upstream_form(), 2),
        (upstream_form(new_keys="sk-one"), 1),
        (upstream_form(forget_keys="on"), 0),
    ):
        assert browser.post(page, form).status_code == 302
        row.refresh_from_db()
        assert row.key_count == count
    assert bytes(row.secret) == b""
    assert changes() == 4


def test_keys_that_nothing_opens_are_said_to_be_so(browser: Client) -> None:
    Upstream.objects.create(name="work", provider="openai", secret=b"gAAAAAB-rubbish", key_count=1)
    assert "BRIDGE_ENCRYPTION_KEYS" in browser.get("/admin/conversations/upstream/").text


def test_what_rests_is_shown(browser: Client) -> None:
    add(browser, "upstream", upstream_form(new_keys=KEYS))
    until = timezone.now() + dt.timedelta(minutes=5)
    Rest.objects.create(upstream="work", key=2, reason="refused (HTTP 401)", since=timezone.now(), until=until)
    row = Upstream.objects.get()
    assert "resting" in browser.get("/admin/conversations/upstream/").text
    assert "work, key 2: refused (HTTP 401)" in browser.get(f"/admin/conversations/upstream/{row.pk}/change/").text
    assert "key 2" in browser.get("/admin/conversations/rest/").text


def test_a_route_is_made_with_its_switches_and_every_process_hears_of_it(browser: Client) -> None:
    form = route_form(fallbacks="gemini/gemini-3-pro", switch_drop_echo="off", switch_narrow_to_reading="on")
    assert add(browser, "route", form) == ""
    row = Route.objects.get()
    assert row.switches == "drop_echo off\nnarrow_to_reading on"
    assert changes() == 1
    page = browser.get(f"/admin/conversations/route/{row.pk}/change/").text
    assert 'value="off" selected' in page
    assert "R8: text beside a tool result" in page
    assert "2 switched" in browser.get("/admin/conversations/route/").text


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("target", "gpt-5.5", "It must be upstream/model."),
        ("target", "nowhere/gpt-5.5", "neither a provider nor one of the upstreams"),
        ("fallbacks", "openai/a b", "It must be upstream/model."),
        ("fallbacks", "nowhere/x", "neither a provider nor one of the upstreams"),
    ],
)
def test_a_target_must_be_one(browser: Client, field: str, value: str, said: str) -> None:
    assert said in add(browser, "route", route_form(**{field: value}))
    assert not Route.objects.exists()


def test_a_route_may_lead_to_an_upstream_of_ones_own(browser: Client) -> None:
    add(browser, "upstream", upstream_form())
    assert add(browser, "route", route_form(target="work/gpt-5.5")) == ""


def test_deleting_is_heard_of_too(browser: Client) -> None:
    add(browser, "route", route_form())
    row = Route.objects.get()
    browser.post(f"/admin/conversations/route/{row.pk}/delete/", {"post": "yes"})
    assert not Route.objects.exists()
    assert changes() == 2


def test_lessons_are_shown_and_can_be_forgotten(browser: Client) -> None:
    lesson = Learned.objects.create(
        upstream="vllm", model="m", remedy='{"why":"","drop":["user"]}', why="no <user>", learned_at=timezone.now()
    )
    assert "no &lt;user&gt;" in browser.get("/admin/conversations/learned/").text
    form = {"action": "delete_selected", "_selected_action": str(lesson.pk), "post": "yes"}
    browser.post("/admin/conversations/learned/", form)
    assert not Learned.objects.exists()
    assert changes() == 1


@pytest.mark.parametrize(
    ("model", "asked", "not_yet"),
    [
        ("upstream", "API keys", ("Rests", "Changed at", "Forget the stored keys")),
        ("hostedtool", "Input schema", ("Failures", "Open until")),
        ("toolsecret", "Value", ("Kept",)),
    ],
)
def test_a_form_for_a_new_row_asks_and_has_nothing_to_tell(
    browser: Client, model: str, asked: str, not_yet: tuple[str, ...]
) -> None:
    page = browser.get(f"/admin/conversations/{model}/add/").text
    assert asked in page
    assert [words for words in not_yet if words in page] == []


def test_who_may_only_look_sees_what_is_switched_and_no_questions(browser: Client, outsider: Client) -> None:
    add(browser, "route", route_form(switch_drop_echo="off", switch_narrow_to_reading="on"))
    add(browser, "upstream", upstream_form(new_keys=KEYS))
    ToolSecret.objects.create(name="weather", host="weather.example", value=b"")
    pages = {
        name: outsider.get(f"/admin/conversations/{name}/{model.objects.get().pk}/change/").text
        for name, model in (("route", Route), ("upstream", Upstream), ("toolsecret", ToolSecret))
    }
    assert "drop_echo off" in pages["route"]
    assert "narrow_to_reading on" in pages["route"]
    assert "switch_" not in pages["route"]
    for question in ("New keys", "Forget keys", "New value"):
        assert question not in "".join(pages.values())
    assert "Switched" not in browser.get(f"/admin/conversations/route/{Route.objects.get().pk}/change/").text


def test_what_a_switch_says_about_markup_is_shown_as_text(browser: Client) -> None:
    page = browser.get("/admin/conversations/route/add/").text
    assert " &lt;system-reminder&gt; hints" in page
    assert "<system-reminder>" not in page


def test_what_the_environment_configures_is_shown_beside_the_rows(browser: Client, settings: Settings) -> None:
    settings.BRIDGE_UPSTREAMS = {
        "openai": (("sk-a", "sk-b"), None),
        "vllm": ((), "https://user:pass-word@gpu.example/secret/v1"),
    }
    settings.BRIDGE_MODEL_MAP = {"opus": "openai/gpt-5.5", "sonnet": None, "haiku": None, "default": "vllm/qwen"}
    add(browser, "upstream", upstream_form(name="openai"))
    page = browser.get("/admin/conversations/upstream/").text
    assert page.count("a row replaces it") == 1
    assert "gpu.example" in page
    assert not any(secret in page for secret in ("sk-a", "pass-word", "secret/v1"))
    routes = browser.get("/admin/conversations/route/").text
    for words in ("claude*opus*", "openai/gpt-5.5", "MODEL_MAP_OPUS", "vllm/qwen", "MODEL_MAP_DEFAULT"):
        assert words in routes
    assert "MODEL_MAP_SONNET" not in routes


def test_the_built_in_prices_are_shown(browser: Client) -> None:
    page = browser.get("/admin/conversations/price/").text
    assert "claude-sonnet-5-5*" in page
    assert f"{len(DEFAULTS)} list prices" in page


def test_small_tables_say_nothing_of_results_that_nobody_asked_for(browser: Client) -> None:
    add(browser, "route", route_form())
    assert "Show all" not in browser.get("/admin/conversations/route/").text
    assert "0 results" in browser.get("/admin/conversations/route/?q=nothing").text


@pytest.mark.parametrize("address", ["models.example/v1", "ftp://models.example", "https://", "//models.example"])
def test_an_address_that_no_request_could_go_to_is_refused(browser: Client, address: str) -> None:
    assert "must be an http:// or https:// URL" in add(browser, "upstream", upstream_form(base_url=address))
    assert not Upstream.objects.exists()


def test_an_address_is_kept_without_the_slash_at_its_end(browser: Client) -> None:
    assert add(browser, "upstream", upstream_form(base_url="https://models.example/v1/")) == ""
    assert Upstream.objects.get().base_url == "https://models.example/v1"


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        ('{"why":"","drop":["user","seed"]}', "user is left out; seed is left out"),
        ('{"why":"","rename":[["max_tokens","max_completion_tokens"]]}', "max_tokens goes as max_completion_tokens"),
        ('{"why":"","max_output":8192}', "answers end after 8,192 tokens"),
        ('{"why":"","drop":["user"],"tool_limit":128}', "user is left out; no more than 128 tools go"),
        ('{"why":"","description_limit":1024}', "1,024 characters of a tool's description go"),
        ('{"why":"","schema_levels":3}', "schemas go 3 levels deep"),
        ('{"why":"","tools_without_reasoning":true}', "requests with tools go without reasoning"),
        ('{"why":"","json_schemas":true}', "tools go as JSON Schemas"),
        ('{"why":"","of_another_version":1}', '{"why":"","of_another_version":1}'),
        ("{", "{"),
    ],
)
def test_a_lesson_is_told_in_words(remedy: str, words: str) -> None:
    assert taught(remedy) == words


def test_an_upstream_of_the_environment_says_that_it_rests(browser: Client, settings: Settings) -> None:
    settings.BRIDGE_UPSTREAMS = {"openai": (("sk-a", "sk-b"), None), "gemini": (("k",), None), "xai": (("k",), None)}
    until = timezone.now() + dt.timedelta(minutes=5)
    for name, key in (("openai", 1), ("openai", 2), ("gemini", 0), ("gemini", 1)):
        Rest.objects.create(upstream=name, key=key, reason="refused", since=timezone.now(), until=until)
    page = browser.get("/admin/conversations/upstream/").text
    assert [page.count(words) for words in ("2 keys resting", "it rests")] == [1, 1]


def test_prices_are_dollars(browser: Client) -> None:
    Price.objects.create(pattern="m", input=Decimal("12345.5"), output=Decimal("0.0375"))
    page = browser.get("/admin/conversations/price/").text
    for words in ("$12,345.50", "$0.0375", "$0.00", "Input, per million"):
        assert words in page
