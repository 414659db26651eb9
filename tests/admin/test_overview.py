"""The admin's first page."""

import datetime as dt

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.admin.overview import columns, quantile
from conversations.models import ApiKey, Conversation, ToolEntry, Turn, UsageEntry
from tests.admin import rows


@pytest.mark.django_db
@pytest.mark.parametrize("chosen", ["1h", "24h", "7d", "30d", "nonsense"])
def test_the_overview_adds_up_and_is_cheap(browser: Client, chosen: str) -> None:
    rows.seed(50)
    with CaptureQueriesContext(connection) as queries:
        page = browser.get("/admin/", {"range": chosen})
    assert len(queries) <= 20
    figures = {figure.name: figure for figure in page.context["figures"]}
    assert (figures["Attempts"].value, figures["Errors"].value, figures["Tokens in"].value) == ("50", "10", "50,000")
    assert sum(column.height > 0 for column in page.context["columns"]) >= 1


@pytest.mark.django_db
def test_every_figure_leads_to_the_rows_behind_it(browser: Client) -> None:
    rows.seed(20)
    page = browser.get("/admin/")
    for figure in (*page.context["figures"], *page.context["live"]):
        if figure.url:
            assert browser.get(figure.url).status_code == 200, figure.name
    errors = next(figure for figure in page.context["figures"] if figure.name == "Errors")
    listed = browser.get(errors.url).context["cl"].result_list
    assert len(listed) == UsageEntry.objects.filter(status="error").count() == 4


@pytest.mark.django_db
def test_what_is_due_to_be_purged_is_counted_and_listed_by_each_key_s_own_period(browser: Client) -> None:
    rows.seed(6)
    Conversation.objects.filter(pk__lte=3).update(last_activity=timezone.now() - dt.timedelta(hours=2))
    Conversation.objects.filter(pk=3).update(held=True)
    ApiKey.objects.update(inactivity_hours=1)
    due = next(figure for figure in browser.get("/admin/").context["live"] if figure.name == "Due to be purged")
    assert due.value == "2"
    assert {row.pk for row in browser.get(due.url).context["cl"].result_list} == {1, 2}


@pytest.mark.django_db
def test_the_summaries_add_up_to_the_figures_and_lead_to_their_entries(browser: Client) -> None:
    rows.seed(12)
    other = rows.a_key()  # of the same name
    UsageEntry.objects.filter(request_id="req_" + "1".zfill(24)).update(api_key=other, cache_read=500, cache_write=7)
    page = browser.get("/admin/")
    for lines in (page.context["by_model"], page.context["by_key"]):
        assert sum(line.read for line in lines) == 12_507
        assert [len(browser.get(line.url).context["cl"].result_list) for line in lines] == [
            line.attempts for line in lines
        ]
    assert sorted(line.attempts for line in page.context["by_key"]) == [1, 11]


@pytest.mark.django_db
def test_what_a_summary_has_no_line_for_is_its_last_one(browser: Client) -> None:
    key = rows.seed(33)
    for number, entry in enumerate(UsageEntry.objects.order_by("pk")):
        UsageEntry.objects.filter(pk=entry.pk).update(upstream=f"up{number % 11}", model=f"model{number % 9}")
    ToolEntry.objects.bulk_create(
        ToolEntry(api_key=key, request_id="r", created_at=timezone.now(), tool_name=f"tool{number}", calls=number)
        for number in range(1, 12)
    )
    page = browser.get("/admin/")
    for name, words in (("by_upstream", "3 others"), ("by_model", "1 other")):
        lines = page.context[name]
        assert (len(lines), lines[-1].name, lines[-1].url) == (9, words, "")
        assert sum(line.attempts for line in lines) == 33
        assert sum(line.failed for line in lines) == UsageEntry.objects.filter(status="error").count()
    assert "3 others</th><td>6</td>" in page.text
    assert [line.name for line in page.context["by_key"]] == ["tests"]


@pytest.mark.django_db
def test_an_empty_bridge_has_an_overview(browser: Client) -> None:
    assert "Nothing was used" in browser.get("/admin/").text


@pytest.mark.django_db
def test_what_is_empty_says_what_would_be_there(browser: Client) -> None:
    assert 'href="/admin/connect/">Connect</a> has the lines' in browser.get("/admin/").text
    for name, words in (
        ("learned", "that is a lesson"),
        ("rest", "that is a rest"),
        ("replay", "compares the answers"),
    ):
        assert words in browser.get(f"/admin/conversations/{name}/").text


@pytest.mark.django_db
def test_traffic_is_for_those_who_may_see_it(client: Client) -> None:
    user = User.objects.create_user("new", is_staff=True)
    client.force_login(user, "django.contrib.auth.backends.ModelBackend")
    assert "not see traffic" in client.get("/admin/").text


def test_a_plot_has_a_place_for_every_hour() -> None:
    end = dt.datetime(2026, 1, 2, 12, 30, tzinfo=dt.UTC)
    plot = columns([("2026-01-02 11", 4, 1), ("2026-01-02 12", 2, 0)], end - dt.timedelta(hours=24), end, "hour")
    assert len(plot) == 25
    assert [(column.height, column.errors) for column in plot[-2:]] == [(120, 30), (60, 0)]
    assert plot[-1].x + plot[-1].width <= 100


def test_quantiles_of_few_values() -> None:
    assert quantile([], 0.5) == 0
    assert quantile([3.0], 0.95) == 3
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 3


@pytest.mark.django_db
def test_loops_and_rests_lead_to_their_rows(browser: Client, turn: Turn) -> None:
    page = browser.get("/admin/").text
    assert "Loops found" in page
    assert "notes=loop" in page
    assert browser.get("/admin/conversations/turn/?notes=loop").context["cl"].result_count == 0
    note = {"kind": "policy", "rule": "Loop", "what": "messages.3: Bash had the same result"}
    Turn.objects.update(note_count=1, notes=rows.encoded([note]))
    assert browser.get("/admin/conversations/turn/?notes=loop").context["cl"].result_count == 1


@pytest.mark.django_db
def test_an_upstream_s_errors_are_counted_and_lead_to_their_attempts(browser: Client) -> None:
    rows.seed(20)
    page = browser.get("/admin/")
    lines = page.context["by_upstream"]
    assert {line.name for line in lines} == {"openai", "gemini", "demo"}
    assert sum(line.failed for line in lines) == UsageEntry.objects.filter(status="error").count()
    worst = lines[0]
    assert worst.failed == max(line.failed for line in lines)
    assert f'href="{worst.url}&status=error"'.replace("&", "&amp;") in page.text
    assert browser.get(f"{worst.url}&status=error").context["cl"].result_count == worst.failed


def test_a_plot_says_when_it_begins() -> None:
    end = dt.datetime(2026, 1, 2, 12, 30, tzinfo=dt.UTC)
    for length, unit, begins in (
        (dt.timedelta(hours=1), "minute", "2026-01-02 11:30 UTC"),
        (dt.timedelta(hours=24), "hour", "2026-01-01 12:00 UTC"),
        (dt.timedelta(days=30), "day", "2025-12-03 UTC"),
    ):
        assert columns([], end - length, end, unit)[0].begins == begins
