"""Hosted tools in the admin: checked before they are stored, their secrets go in and never come out."""

import datetime as dt

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations import secrets
from conversations.models import Change, Conversation, HostedTool, ToolExecution, ToolSecret
from tests.admin import rows
from tests.admin.test_permissions import everything, links
from tests.hosted.test_addresses import VECTORS, listening

pytestmark = pytest.mark.django_db


def form(**fields: object) -> dict[str, object]:
    given: dict[str, object] = {
        "name": "weather",
        "kind": "http",
        "enabled": "on",
        "url": "https://93.184.215.14/w",
        "method": "POST",
        "schema": "{}",
        "headers": "Authorization: Bearer {{weather}}",
    }
    return given | fields


def add(browser: Client, model: str, given: dict[str, object]) -> str:
    page = browser.post(f"/admin/conversations/{model}/add/", given)
    return page.text if page.status_code == 200 else ""


def test_tool_is_stored_with_its_keys_and_everybody_hears_of_it(browser: Client) -> None:
    key = rows.a_key()
    assert add(browser, "hostedtool", form(api_keys=[key.pk], for_models="gpt-*")) == ""
    tool = HostedTool.objects.get()
    assert list(tool.api_keys.all()) == [key]
    assert Change.objects.filter(kind="hosted").count() == 1
    assert "1 key, 1 pattern of models" in browser.get("/admin/conversations/hostedtool/").text


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"url": "http://169.254.169.254/latest/"}, "not on the public internet"),
        ({"url": "https://127.0.0.1/"}, "not on the public internet"),
        ({"url": "file:///etc/passwd"}, "the scheme"),
        ({"schema": "[1]"}, "not a JSON object"),
        ({"headers": "Authorization"}, "is not of the form"),
        ({"name": "two words"}, "Letters, digits"),
    ],
)
def test_wrong_tool_is_refused(browser: Client, wrong: dict[str, object], words: str) -> None:
    assert words in add(browser, "hostedtool", form(**wrong))
    assert not HostedTool.objects.exists()


def test_no_disguise_of_an_address_passes_the_form(browser: Client) -> None:
    with listening() as (port, came):
        for vector in VECTORS:
            assert "errorlist" in add(browser, "hostedtool", form(url=vector.format(port=port))), vector
        assert came == []
    assert not HostedTool.objects.exists()


def test_secret_is_encrypted_and_shown_nowhere(browser: Client) -> None:
    given: dict[str, object] = {"name": "weather", "host": "api.example", "new_value": "s3cret-value"}
    assert add(browser, "toolsecret", given) == ""
    secret = ToolSecret.objects.get()
    assert secrets.decrypt(bytes(secret.value)) == "s3cret-value"
    pages = [browser.get(f"/admin/conversations/toolsecret/{path}").text for path in ("", f"{secret.pk}/change/")]
    assert not any("s3cret" in page for page in pages)


def test_secret_that_moves_to_another_host_has_to_be_given_anew(browser: Client) -> None:
    secret = ToolSecret.objects.create(name="weather", host="api.example", value=secrets.encrypt("old"))
    path = f"/admin/conversations/toolsecret/{secret.pk}/change/"
    moved = {"name": "weather", "host": "evil.example", "new_value": ""}
    assert "has to be given its value" in browser.post(path, moved).text
    assert browser.post(path, moved | {"new_value": "new"}).status_code == 302
    secret.refresh_from_db()
    assert (secret.host, secrets.decrypt(bytes(secret.value))) == ("evil.example", "new")
    renamed = {"name": "other", "host": "evil.example", "new_value": ""}
    assert browser.post(path, renamed).status_code == 302
    secret.refresh_from_db()
    assert (secret.name, secrets.decrypt(bytes(secret.value))) == ("other", "new")


def test_open_circuit_is_seen(browser: Client) -> None:
    later = timezone.now() + dt.timedelta(seconds=20)
    tool = HostedTool.objects.create(name="w", url="https://a.example", failures=5, open_until=later, last_error="boom")
    assert "resting" in browser.get("/admin/conversations/hostedtool/").text
    assert "boom" in browser.get(f"/admin/conversations/hostedtool/{tool.pk}/change/").text
    HostedTool.objects.update(open_until=None)
    assert "failing" in browser.get("/admin/conversations/hostedtool/").text
    HostedTool.objects.update(enabled=False)
    assert "off" in browser.get("/admin/conversations/hostedtool/").text


def test_runs_are_found_from_their_conversation(browser: Client, outsider: Client, conversation: Conversation) -> None:
    turn = conversation.turns.get()
    run = ToolExecution.objects.create(
        id=1, conversation=conversation, api_key=conversation.api_key, turn=turn, tool_use_id="mcptoolu_1",
        server_name="maps", tool_name="route", arguments=b'{"to":"Rome"}', result=b"turn left", status="complete",
        progress='{"progress":3,"total":3,"message":"working"}',
        attempts=2, created_at=timezone.now(), finished_at=timezone.now(), duration_ms=12,
    )  # fmt: skip
    assert (
        "toolexecution/?conversation="
        in browser.get(f"/admin/conversations/conversation/{conversation.pk}/change/").text
    )
    listed = browser.get(f"/admin/conversations/toolexecution/?conversation={conversation.pk}").text
    assert "maps: route" in listed
    assert "3/3 working" in listed
    for term in ("mcptoolu_1", "route", "session/one"):
        assert "maps: route" in browser.get("/admin/conversations/toolexecution/", {"q": term}).text
    path = f"/admin/conversations/toolexecution/{run.pk}/change/"
    assert "turn left" in browser.get(path).text
    assert "turn left" not in outsider.get(path).text


def test_switch_for_clients_is_on_the_keys_page(browser: Client) -> None:
    key = rows.a_key()
    assert "hosted_tools" in browser.get(f"/admin/conversations/apikey/{key.pk}/change/").text


def test_a_hosted_run_leads_to_the_tool_chain_and_the_hops(browser: Client, conversation: Conversation) -> None:
    everything(conversation)
    run, turn = ToolExecution.objects.get(), conversation.turns.get()
    found = links(browser.get(f"/admin/conversations/toolexecution/{run.pk}/change/").text)
    assert f"/admin/conversations/conversation/{conversation.pk}/toolchain/" in found
    assert f"/admin/conversations/turn/{turn.pk}/hops/" in found
    assert f"/admin/conversations/hostedtool/{run.tool_id}/change/" in found


def test_more_hosted_tools_cost_no_more_queries(browser: Client) -> None:
    for number in range(12):
        tool = HostedTool.objects.create(name=f"t{number}", url="https://93.184.215.14/w", created_at=timezone.now())
        tool.api_keys.set([rows.a_key(f"k{number}")])
    with CaptureQueriesContext(connection) as queries:
        page = browser.get("/admin/conversations/hostedtool/")
    assert page.text.count("1 key, 0 patterns of models") == 12
    assert len(queries) < 12


def test_the_form_says_where_tools_may_be_and_to_whom_one_is_offered(browser: Client) -> None:
    page = browser.get("/admin/conversations/hostedtool/add/").text
    assert "BRIDGE_TOOL_HOSTS" in page
    assert "API keys" in page
    assert add(browser, "hostedtool", form()) == ""
    assert "nobody" in browser.get("/admin/conversations/hostedtool/").text
