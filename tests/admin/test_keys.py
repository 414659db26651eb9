"""API keys in the admin: the secret is shown once and kept nowhere; every process hears of a change."""

import logging
import re
from decimal import Decimal

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from conversations import keys
from conversations.admin.api_key import budgeted
from conversations.models import ApiKey, Change, Turn
from tests.admin import rows

SECRET = re.compile(r"sk-tb-[\w-]{40,}")
pytestmark = pytest.mark.django_db


def issue(browser: Client) -> tuple[str, str]:
    form = {"name": "laptop", "storage": "metadata", "expires_at_0": "2099-01-01", "expires_at_1": "12:00"}
    page = browser.post("/admin/conversations/apikey/add/", form)
    assert page.status_code == 200
    return page.text, SECRET.findall(page.text)[0]


def test_an_issued_key_is_shown_once_and_kept_nowhere(browser: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    page, secret = issue(browser)
    assert set(SECRET.findall(page)) == {secret}
    key = ApiKey.objects.get(name="laptop")
    assert (key.digest, key.storage, key.expires_at.year if key.expires_at else 0) == (
        keys.digest(secret),
        "metadata",
        2099,
    )
    kept = [str(row.__dict__) for row in (*ApiKey.objects.all(), *LogEntry.objects.all(), *Change.objects.all())]
    kept += [str(session.get_decoded()) for session in Session.objects.all()]
    kept += [cookie.OutputString() for cookie in browser.cookies.values()]
    assert not any(secret in text for text in (*kept, caplog.text))
    for path in ("apikey/", f"apikey/{key.pk}/change/"):
        assert secret not in browser.get(f"/admin/conversations/{path}").text


def test_the_page_with_the_secret_is_not_cached(browser: Client) -> None:
    form = {"name": "laptop", "storage": "full", "expires_at_0": "", "expires_at_1": ""}
    page = browser.post("/admin/conversations/apikey/add/", form)
    assert "no-store" in page["cache-control"]


def test_a_form_with_a_mistake_issues_nothing(browser: Client) -> None:
    page = browser.post("/admin/conversations/apikey/add/", {"name": "", "storage": "full"})
    assert page.status_code == 200
    assert not SECRET.findall(page.text)
    assert not ApiKey.objects.exists()


def test_revoking_asks_first_and_every_process_hears_of_it(browser: Client) -> None:
    key, _ = keys.issue("laptop")
    page = f"/admin/conversations/apikey/{key.pk}/revoke/"
    assert "cannot be undone" in browser.get(page).text
    key.refresh_from_db()
    assert key.revoked_at is None
    browser.post(page)
    key.refresh_from_db()
    assert not key.usable
    assert Change.objects.filter(kind="key", ref=key.digest).exists()
    assert LogEntry.objects.filter(change_message="Revoked").exists()


def test_storage_and_expiry_can_be_changed_and_every_process_hears_of_it(browser: Client) -> None:
    key, _ = keys.issue("laptop")
    form = {"name": "laptop", "storage": "minimal", "expires_at_0": "2099-01-01", "expires_at_1": "12:00"}
    assert browser.post(f"/admin/conversations/apikey/{key.pk}/change/", form).status_code == 302
    key.refresh_from_db()
    assert (key.storage, key.expires_at is not None) == ("minimal", True)
    assert Change.objects.filter(kind="key", ref=key.digest).count() == 1


def test_a_key_cannot_be_deleted(browser: Client) -> None:
    key, _ = keys.issue("laptop")
    assert browser.post(f"/admin/conversations/apikey/{key.pk}/delete/", {"post": "yes"}).status_code == 403


def test_who_may_only_look_can_neither_issue_nor_revoke(outsider: Client) -> None:
    key, _ = keys.issue("laptop")
    assert outsider.post("/admin/conversations/apikey/add/", {"name": "x", "storage": "full"}).status_code == 403
    assert outsider.post(f"/admin/conversations/apikey/{key.pk}/revoke/").status_code == 403
    assert ApiKey.objects.filter(revoked_at=None).count() == 1


def test_a_rotated_key_has_a_new_secret_that_is_shown_once(browser: Client) -> None:
    key, old = keys.issue("laptop")
    page = f"/admin/conversations/apikey/{key.pk}/rotate/"
    assert "refused within a second" in browser.get(page).text
    answer = browser.post(page)
    (secret,) = set(SECRET.findall(answer.text))
    key.refresh_from_db()
    assert key.digest == keys.digest(secret) != keys.digest(old)
    assert "no-store" in answer["cache-control"]
    assert Change.objects.filter(kind="key", ref=keys.digest(old)).exists()
    assert secret not in str(list(LogEntry.objects.values()))


@pytest.mark.parametrize("table", ["apikey", "conversation"])
def test_a_page_of_what_is_no_number_is_not_there(browser: Client, table: str) -> None:
    assert browser.get(f"/admin/conversations/{table}/%00/change/").status_code == 302


def test_a_key_says_what_it_has_spent_as_its_budgets_count(browser: Client, turn: Turn) -> None:
    for status, tokens, micros in (("complete", 200, 1_500_000), ("replay", 9_000, 9_000_000)):
        entry = rows.an_entry(turn, turn.conversation)
        entry.status, entry.input_tokens, entry.cost_micros, entry.created_at = status, tokens, micros, timezone.now()
        entry.save()
    page = browser.get(f"/admin/conversations/apikey/{turn.api_key_id}/change/").text
    assert "today 1,200 tokens, $1.50; this month 1,200 tokens, $1.50" in page
    assert "Empty: no limit." in page


@pytest.mark.parametrize(
    ("used", "budgets", "words"),
    [
        ((1_200, 0), (None, None), "1,200 tokens"),
        ((1_200, 0), (5_000, Decimal("2.5")), "1,200 of 5,000 tokens, $0 of $2.50"),
        ((5_000, 100), (5_000, None), "5,000 of 5,000 tokens, $0.0001 (used up: requests are refused with 402)"),
        ((2, 2_500_000), (None, Decimal("2.5")), "2 tokens, $2.50 of $2.50 (used up: requests are refused with 402)"),
    ],
)
def test_what_is_left_of_a_budget_is_said(
    used: tuple[int, int], budgets: tuple[int | None, Decimal | None], words: str
) -> None:
    assert budgeted(*used, *budgets) == words
