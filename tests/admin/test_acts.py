"""What operators do by hand: each asks first, and each is written down."""

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.utils import timezone

from conversations import replay, routes
from conversations.health import Health
from conversations.ledger import Prices
from conversations.models import Change, Conversation, Replay, Rest, Turn, UsageEntry
from conversations.store import accounts
from conversations.store.page import PageDatabase
from conversations.store.routes import configuration
from translation.values import Usage

pytestmark = pytest.mark.django_db
RESTING = "/admin/conversations/rest/rest/"


def log() -> list[str]:
    return list(LogEntry.objects.order_by("pk").values_list("change_message", flat=True))


def test_an_upstream_rests_and_is_woken_by_hand(browser: Client, outsider: Client) -> None:
    assert "Let an upstream rest?" in browser.get(RESTING).text
    assert not Rest.objects.exists()
    browser.post(RESTING, {"upstream": "nobody", "minutes": "15"})
    assert not Rest.objects.exists()
    assert outsider.post(RESTING, {"upstream": "demo", "minutes": "15"}).status_code == 403
    browser.post(RESTING, {"upstream": "demo", "minutes": "15"})
    row = Rest.objects.get()
    assert (row.upstream, row.key, row.reason, row.is_over) == ("demo", 0, "by hand, operator", False)
    (known,) = configuration(PageDatabase()).rests
    assert (known.upstream, round(known.until - row.until.timestamp())) == ("demo", 0)
    wake = f"/admin/conversations/rest/{row.pk}/wake/"
    assert "Wake this upstream?" in browser.get(wake).text
    browser.post(wake)
    assert Rest.objects.get().is_over
    assert configuration(PageDatabase()).rests == ()
    assert Change.objects.filter(kind="wake", ref="demo").exists()
    assert len(log()) == 2


def test_what_rests_by_hand_is_not_woken_by_its_own_answers() -> None:
    health = Health()
    health.rest_by_hand({"openai": 60.0, "gemini": -1.0})
    health.reached("openai")
    assert (health.is_resting("openai"), health.is_resting("gemini")) == (True, False)
    health.refused("openai", ("k",), "k", 401)
    health.wake("openai")
    assert not health.is_resting("openai")
    assert health.has_key("openai", ("k",))


def test_a_rest_is_heard_by_every_process() -> None:
    routes.rest("demo", 5, "somebody")
    routes.wake("demo")
    assert list(Change.objects.order_by("pk").values_list("kind", flat=True)) == ["routes", "wake", "routes"]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_asks_first_and_is_written_down(browser: Client, conversation: Conversation, form: str) -> None:
    path = f"/admin/conversations/conversation/{conversation.pk}/export/?form={form}"
    assert "It is written down" in browser.get(path).text
    assert log() == []
    assert "attachment" in browser.post(path)["content-disposition"]
    assert "Exported as" in log()[0]


def test_a_replay_is_paid_for_in_the_ledger_and_by_no_budget(browser: Client, turn: Turn) -> None:
    row = Replay.objects.create(
        conversation=turn.conversation, turn=turn, target="openai/gpt-5.5", exact=True, who="operator"
    )
    spent = ("2000-01-01", "2100-01-01")
    before = accounts.spent(PageDatabase(), turn.api_key_id, *spent)
    replay.keep(row, replay.Outcome(usage=Usage(input_tokens=10_000, output_tokens=500)), Prices())
    entry = UsageEntry.objects.get(status="replay")
    assert (entry.request_id, entry.input_tokens, entry.model) == (turn.request_id, 10_000, "gpt-5.5")
    assert entry.cost_micros == Replay.objects.get().cost_micros > 0
    assert entry.created_at <= timezone.now()
    assert accounts.spent(PageDatabase(), turn.api_key_id, *spent) == before
    assert "replay" in browser.get("/admin/conversations/usageentry/?status=replay").text
