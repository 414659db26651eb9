"""How long things are kept: text, conversations, the ledger; for the bridge and for a key."""

import pytest
from django.core.management import CommandError, call_command

from tests.limits.cluster import CHAT, QUESTION, Cluster, Reply
from tests.limits.test_metrics import TOOL, call_answer
from tests.servers.upstream import ScriptedUpstream

TEXT = "a sentence that nobody should find"


def ask(cluster: Cluster, key: str, name: str, body: object = None) -> Reply:
    said = {"messages": [{"role": "user", "content": TEXT}], "system": TEXT}
    reply = cluster.ask(key, body or QUESTION | said, **{"X-Conversation-ID": name})
    assert reply.status == 200, reply.body
    return reply


def age(cluster: Cluster, name: str, period: str) -> None:
    sql = """UPDATE conversations_conversation SET last_activity = last_activity - %s::interval
        WHERE external_id = %s RETURNING 1"""
    cluster.rows(sql, period, name)


def exists(cluster: Cluster, name: str) -> bool:
    return bool(cluster.rows("SELECT 1 FROM conversations_conversation WHERE external_id = %s", name))


def stored(cluster: Cluster, name: str) -> bytes:
    """Everything that is kept of a conversation, in one heap."""
    parts = []
    for table, link in (("conversation", "c.id = t.id"), ("message", ""), ("turn", ""), ("blob", ""), ("claim", "")):
        on = link or "c.id = t.conversation_id"
        sql = f"SELECT t.* FROM conversations_{table} t JOIN conversations_conversation c ON {on}"  # noqa: S608
        parts += [repr(row) for row in cluster.rows(f"{sql} WHERE c.external_id = %s", name)]
    return "\n".join(parts).encode()


@pytest.mark.parametrize("seconds", ["-1", "nan"])
def test_a_purge_has_a_time_to_work_for(seconds: str) -> None:
    with pytest.raises(CommandError, match=f"seconds: {seconds} is no time"):
        call_command("purge_inactive", f"--seconds={seconds}", skip_checks=True)


def test_text_goes_after_its_own_period_and_tool_calls_still_work(cluster: Cluster, scripted: ScriptedUpstream) -> None:
    key = cluster.issue("content", content_hours=1, inactivity_hours=100)
    said = QUESTION | {"messages": [{"role": "user", "content": TEXT}], "tools": [TOOL]}
    scripted.queue(CHAT, call_answer())
    call = ask(cluster, key, "texts", said).body["content"][0]
    assert TEXT.encode() in stored(cluster, "texts")
    cluster.manage("purge_inactive")
    assert TEXT.encode() in stored(cluster, "texts"), "it is not old enough"
    age(cluster, "texts", "2 hours")
    assert "1 emptied of text" in cluster.manage("purge_inactive")
    assert TEXT.encode() not in stored(cluster, "texts")
    assert " 0 emptied of text" in cluster.manage("purge_inactive"), "once is enough"
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "found"}
    ask(cluster, key, "texts", said | {"messages": [{"role": "user", "content": [result]}]})
    sent = scripted.requests[-1].json()["messages"]
    assert [message["role"] for message in sent[-2:]] == ["assistant", "tool"]


def test_a_history_whose_text_is_gone_cannot_be_appended_to(cluster: Cluster) -> None:
    key = cluster.issue("append", content_hours=1, inactivity_hours=100)
    ask(cluster, key, "appended")
    age(cluster, "appended", "2 hours")
    cluster.manage("purge_inactive")
    more = QUESTION | {"messages": [{"role": "user", "content": "and?"}]}
    headers = {"X-Conversation-ID": "appended", "X-Conversation-Mode": "append"}
    reply = cluster.ask(key, more, **headers)
    assert (reply.status, "no longer kept" in reply.body["error"]["message"]) == (400, True)


def test_a_key_has_a_period_of_its_own_and_held_conversations_stay(cluster: Cluster) -> None:
    short, usual = cluster.issue("short", inactivity_hours=1), cluster.issue("usual")
    for key, name in ((short, "short-old"), (short, "short-held"), (usual, "usual-young"), (usual, "usual-old")):
        ask(cluster, key, name)
    for name, period in (("short-old", "2 hours"), ("short-held", "90 days"), ("usual-young", "2 hours")):
        age(cluster, name, period)
    age(cluster, "usual-old", "25 hours")
    cluster.rows("UPDATE conversations_conversation SET held = true WHERE external_id = 'short-held' RETURNING 1")
    assert "left for next time: 2 conversations" in cluster.manage("purge_inactive", "--seconds=0")
    assert exists(cluster, "short-old"), "there was no time"
    assert 'toolbridge_purge_backlog{what="conversations"} 2.0' in cluster.get("/metrics")[1]
    cluster.manage("purge_inactive")
    assert [exists(cluster, name) for name in ("short-old", "short-held", "usual-young", "usual-old")] == [
        False,
        True,
        True,
        False,
    ]


def test_the_ledger_outlives_conversations_and_ends_after_its_own_period(cluster: Cluster) -> None:
    usual, short = cluster.issue("ledger"), cluster.issue("ledger-short", ledger_days=40)
    for key in (usual, short):
        for name in ("l1", "l2"):
            ask(cluster, key, name)
    sql = """UPDATE conversations_usageentry e SET created_at = e.created_at - %s::interval FROM conversations_apikey k
        WHERE k.id = e.api_key_id AND k.name = %s AND e.conversation_id = 'l1' RETURNING 1"""
    cluster.rows(sql, "401 days", "ledger")
    cluster.rows(sql, "41 days", "ledger-short")
    age(cluster, "l2", "25 hours")
    cluster.manage("purge_inactive")
    assert not exists(cluster, "l2")
    for name in ("ledger", "ledger-short"):
        sql = """SELECT conversation_id FROM conversations_usageentry e JOIN conversations_apikey k
            ON k.id = e.api_key_id WHERE k.name = %s"""
        assert cluster.rows(sql, name) == [("l2",)]


@pytest.mark.django_db
def test_a_purge_that_finds_nothing_speaks_of_no_transaction(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("purge_inactive", skip_checks=True)
    told = capsys.readouterr().out
    assert told.startswith("0 conversations deleted, 0 emptied of text, 0 rows in all; left for next time: ")
