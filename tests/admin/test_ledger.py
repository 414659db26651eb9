"""The ledger as a table to take away."""

import csv
import datetime as dt
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import AsyncClient, Client

from conversations.admin import ledger_page
from conversations.models import ApiKey, Conversation, UsageEntry

pytestmark = pytest.mark.django_db
PAGE = "/admin/conversations/usageentry/export/"


def table(client: Client, days: str = "") -> list[dict[str, str]]:
    answer: Any = client.post(PAGE, {"days": days})
    assert answer.streaming
    assert "attachment" in answer["content-disposition"]
    return list(csv.DictReader(answer.getvalue().decode().splitlines()))


def another(hours: int = 0, **fields: object) -> None:
    entry = UsageEntry.objects.earliest("pk")
    entry.pk, entry.created_at = None, entry.created_at - dt.timedelta(hours=hours)
    for name, value in fields.items():
        setattr(entry, name, value)
    entry.save()


def test_the_ledger_is_exported_after_a_question_and_that_is_written_down(
    browser: Client, conversation: Conversation
) -> None:
    assert PAGE in browser.get("/admin/conversations/usageentry/").text
    assert "It is written down" in browser.get(PAGE).text
    assert browser.post(PAGE, {"days": "5"}).status_code == 404
    assert not LogEntry.objects.exists()
    UsageEntry.objects.update(cost_micros=1_234_567, output_tokens=20)
    (row,) = table(browser)
    assert (row["input_tokens"], row["output_tokens"], row["cost_dollars"]) == ("1000", "20", "1.234567")
    assert (row["conversation_id"], row["api_key"]) == (conversation.external_id, conversation.api_key.name)
    assert LogEntry.objects.get().change_message == "Exported as csv: all"


def test_it_runs_no_formula(browser: Client, conversation: Conversation) -> None:
    ApiKey.objects.update(name="=HYPERLINK(1)")
    UsageEntry.objects.update(requested_model="@SUM(1)", conversation_id="-1+1")
    (row,) = table(browser)
    assert (row["api_key"], row["requested_model"], row["conversation_id"]) == ("'=HYPERLINK(1)", "'@SUM(1)", "'-1+1")


def test_it_is_of_the_days_that_were_chosen_and_in_their_order(
    browser: Client, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_page, "PIECE", 2)
    for hours in (1, 30, 24 * 40):
        another(hours, request_id=f"req_{hours}")
    another(request_id="req_last")
    first = conversation.turns.get().request_id
    assert [row["request_id"] for row in table(browser)] == [first, "req_1", "req_30", "req_960", "req_last"]
    assert [row["request_id"] for row in table(browser, "7")] == [first, "req_1", "req_30", "req_last"]
    UsageEntry.objects.all().delete()
    assert table(browser) == []


def test_it_is_streamed_by_the_server_that_serves_it(browser: Client, conversation: Conversation) -> None:
    client = AsyncClient()
    client.cookies = browser.cookies

    async def told() -> bytes:
        answer: Any = await client.post(PAGE, {"days": ""})
        assert answer.is_async
        return b"".join([piece async for piece in answer])

    header, row = async_to_sync(told)().decode().splitlines()
    assert header.startswith("created_at,api_key")
    assert conversation.turns.get().request_id in row


def test_who_may_not_see_the_ledger_gets_none_of_it(browser: Client, conversation: Conversation) -> None:
    User.objects.update(is_superuser=False, is_staff=True)
    assert browser.post(PAGE, {"days": ""}).status_code == 403
