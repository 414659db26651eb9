"""Rows over the environment: edited while the bridge runs, in force within a second."""

from typing import Any

import pytest

from tests.api.conftest import Serve
from tests.routing.lab import ENCRYPTION, Lab
from tests.servers.chat import calls, error, streamed_text, text
from tests.servers.client import TOOL, folded, result
from tests.servers.ports import wait_until
from tests.servers.script import json_answer


def test_a_changed_route_leads_elsewhere_within_a_second(lab: Lab) -> None:
    a, b = lab.upstream("a"), lab.upstream("b")
    model = lab.route(f"{a}/one")
    lab.records.rows("Route").filter(pattern=model).update(target=f"{b}/two")
    lab.announce()
    wait_until(lambda: f"{b}/two" in lab.leads_to(model), "the new target", seconds=1)
    lab.answers(b, text("from b"))
    assert lab.ask(model).json()["content"][0]["text"] == "from b"


def test_a_route_comes_before_what_the_environment_says(lab: Lab) -> None:
    a = lab.upstream("a")
    assert "openai/gpt-test" in lab.leads_to("claude-sonnet-4-5")
    lab.route(f"{a}/one")
    lab.records.rows("Route").create(pattern="CLAUDE-*sonnet*", target=f"{a}/*")
    lab.announce()
    wait_until(lambda: f"{a}/claude-sonnet-4-5" in lab.leads_to("claude-sonnet-4-5"), "the route", seconds=1)


def test_the_highest_priority_counts_then_the_longest_pattern(lab: Lab) -> None:
    a = lab.upstream("a")
    for pattern, target, priority in (("zz-*", "any", 0), ("zz-long-*", "long", 0), ("zz-lo*", "first", 5)):
        lab.records.rows("Route").create(pattern=pattern, target=f"{a}/{target}", priority=priority)
    lab.route(f"{a}/one")
    found = [lab.leads_to(name) for name in ("zz-x", "zz-long-x")]
    assert [name.rpartition("/")[2].rstrip(")") for name in found] == ["any", "first"]


def test_an_upstream_of_ones_own_is_a_prefix_of_model_names(lab: Lab) -> None:
    a = lab.upstream("a")
    lab.route(f"{a}/one")
    lab.answers(a, text("from a"))
    assert lab.ask(f"{a}/some/model").status_code == 200
    assert lab.requests(a)[0].json()["model"] == "some/model"


def test_what_is_switched_off_is_not_there(lab: Lab) -> None:
    a, b = lab.upstream("a", enabled=False), lab.upstream("b")
    lab.route(f"{b}/one")
    assert lab.ask(f"{a}/one").status_code == 404
    lab.answers(b, text("from b"))
    assert lab.ask(lab.route(f"{a}/one", f"{b}/two")).status_code == 200


def test_guidance_ends_the_system_prompt_and_is_traced(lab: Lab) -> None:
    a = lab.upstream("a")
    lab.answers(a, text("ok"))
    lab.ask(lab.route(f"{a}/one", guidance="Prefer small steps."), system="Be brief.")
    system = lab.requests(a)[0].json()["messages"][0]
    assert system == {"role": "system", "content": "Be brief.\n\nPrefer small steps."}
    assert [(note["kind"], note["rule"]) for note in lab.notes()] == [("policy", "Guidance")]


def test_a_route_has_its_own_profile_switches_and_texts(lab: Lab) -> None:
    a = lab.upstream("a")
    switches = "answer_after_results off\nnarrow_to_reading off"
    model = lab.route(f"{a}/one", policy="conservative", guardrail="Once is enough.", switches=switches)
    lab.answers(a, calls(("call_1", "get_weather", {"city": "Rome"})), text("sunny"))
    said = {"role": "user", "content": "Read the weather."}
    first = lab.client.ask(said, model=model, tools=[TOOL]).json()
    answer = {"role": "assistant", "content": first["content"]}
    lab.client.ask(said, answer, result(first["content"][0]["id"]), model=model, tools=[TOOL])
    sent = lab.requests(a)[1].json()
    assert sent["messages"][0] == {"role": "system", "content": "Once is enough."}
    assert sent.get("tool_choice", "auto") == "auto"
    assert len(sent["tools"]) == 1


GEMINI: dict[str, Any] = {"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]}
RESPONSES: dict[str, Any] = {
    "id": "r", "object": "response", "status": "completed", "model": "m",
    "output": [{"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]}],
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}  # fmt: skip
ANTHROPIC: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
    "stop_sequence": None, "content": [{"type": "text", "text": "ok"}],
    "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "path", "answer"),
    [
        ("vllm", "/chat/completions", text("ok")),
        ("minimax", "/chat/completions", text("ok")),
        ("openai-responses", "/responses", json_answer(RESPONSES)),
        ("gemini", "/models/one:generateContent", json_answer(GEMINI)),
        ("anthropic", "/messages", json_answer(ANTHROPIC)),
    ],
)
def test_an_upstream_that_is_called_whole_still_gives_the_client_a_stream(
    lab: Lab, provider: str, path: str, answer: Any
) -> None:
    a = lab.upstream("a", provider)
    lab.answers(a, answer, path=path)
    events = lab.client.events("hi", model=lab.route(f"{a}/one", stream_upstream=False))
    assert folded(events)[-1]["text"] == "ok"
    assert lab.requests(a)[0].json().get("stream", False) is False


def test_what_an_upstream_refused_is_remembered_by_every_process_and_after_a_restart(
    serve: Serve, encryption: None
) -> None:
    first = serve(BRIDGE_ENCRYPTION_KEYS=ENCRYPTION)
    lab = Lab(first)
    second = serve(first.database_url, BRIDGE_ENCRYPTION_KEYS=ENCRYPTION)
    a = lab.upstream("a")
    model = lab.route(f"{a}/one")
    refusal = error(400, "Unsupported parameter: 'temperature' is not supported with this model.")
    lab.answers(a, refusal, text("ok"), text("ok"), text("ok"))
    assert lab.ask(model, temperature=0.5).status_code == 200
    lesson = lab.records.rows("Learned").get()
    assert (lesson.upstream, lesson.model, "temperature" in lesson.why) == (a, "one", True)
    seen = lab.records.rows("Change").filter(ref__startswith="learned")
    wait_until(seen.exists, "the change is told", seconds=2)
    other = Lab(second)
    other.number = lab.number
    elsewhere = other.route(f"{a}/one")
    assert other.ask(elsewhere, temperature=0.5).status_code == 200
    first.bridge.stop()
    first.bridge.start()
    assert lab.ask(model, temperature=0.5).status_code == 200
    assert ["temperature" in request.json() for request in lab.requests(a)] == [True, False, False, False]
    other.close()
    lab.close()


def test_a_row_replaces_the_environments_upstream_and_keys_are_decrypted(lab: Lab) -> None:
    a = lab.upstream("a", keys=["sk-row"])
    row = lab.records.rows("Upstream").get(name=a)
    row.name, row.provider = "openai", "openai"
    row.pk = None
    row.save(using=lab.records.alias)
    try:
        lab.route(f"{a}/one")
        lab.answers(a, text("ok"))
        assert lab.ask("openai/gpt-test").status_code == 200
        assert lab.requests(a)[0].headers["authorization"] == "Bearer sk-row"
        lab.answers(a, json_answer(RESPONSES), path="/responses")
        assert lab.ask("openai-responses/gpt-5.5").status_code == 200
    finally:
        row.delete(using=lab.records.alias)
        lab.announce()


def test_streams_come_through_rows_as_through_the_environment(lab: Lab) -> None:
    a = lab.upstream("a")
    lab.answers(a, streamed_text("one ", "two"))
    assert folded(lab.client.events("hi", model=lab.route(f"{a}/one")))[0]["text"] == "one two"
