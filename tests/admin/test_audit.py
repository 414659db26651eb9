"""Who did what, for those who may see it."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.contrib.contenttypes.models import ContentType
from django.test import Client

from conversations.models import Conversation, Turn

pytestmark = pytest.mark.django_db
AUDIT = "/admin/admin/logentry/"


def acts(page: object) -> list[tuple[str, str]]:
    return [(row.get_change_message(), row.object_repr) for row in page.context["cl"].result_list]  # type: ignore[attr-defined]  # Django's test response


def test_what_operators_did_is_listed_and_found(browser: Client, turn: Turn) -> None:
    key = turn.api_key
    browser.get(f"/admin/conversations/turn/{turn.pk}/hops/")
    browser.post(f"/admin/conversations/apikey/{key.pk}/revoke/")
    read, revoked = ("Read content", "session/one"), ("Revoked", str(key))
    assert acts(browser.get(AUDIT)) == [revoked, read]
    assert acts(browser.get(AUDIT, {"q": "session/one"})) == [read]
    assert acts(browser.get(AUDIT, {"operator": User.objects.get().pk})) == [revoked, read]
    assert acts(browser.get(AUDIT, {"operator": "99"})) == []
    kind = ContentType.objects.get_for_model(Conversation).pk
    assert acts(browser.get(AUDIT, {"kind": str(kind), "operator": "²"})) == [read]
    page = browser.get(AUDIT).text
    assert f'href="/admin/conversations/apikey/{key.pk}/change/"' in page
    assert f'href="{AUDIT}"' in page  # in the sidebar
    assert "session/one" in browser.get(f"{AUDIT}{LogEntry.objects.earliest('pk').pk}/change/").text


def test_it_outlives_what_it_is_about_and_nobody_changes_it(browser: Client, conversation: Conversation) -> None:
    browser.post(f"/admin/conversations/conversation/{conversation.pk}/terminate/")
    assert acts(browser.get(AUDIT)) == [("Terminated session/one", "session/one")]
    entry = LogEntry.objects.get()
    for act in ("change", "delete"):
        browser.post(f"{AUDIT}{entry.pk}/{act}/", {"post": "yes"})
    assert LogEntry.objects.get().change_message == entry.change_message


def test_it_is_for_those_who_may_see_it(outsider: Client, browser: Client, conversation: Conversation) -> None:
    browser.post(f"/admin/conversations/conversation/{conversation.pk}/hold/")
    assert outsider.get(AUDIT).status_code == 403
    assert AUDIT not in outsider.get("/admin/").text
    user = User.objects.get(username="outsider")
    user.user_permissions.set(Permission.objects.filter(codename="view_logentry"))
    page = outsider.get(AUDIT).text
    assert "session/one" in page
    assert "/admin/conversations/conversation/" not in page
