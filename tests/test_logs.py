"""Log lines."""

import json
import logging

from bridge_project.logs import formatter


def test_a_production_line_is_one_json_object_even_with_a_traceback() -> None:
    error = ValueError("first\nsecond")
    fault = (ValueError, error, None)
    record = logging.LogRecord("conversations", logging.ERROR, "x.py", 1, "turn %s", ("t1",), fault)
    line = formatter(as_json=True).format(record)
    assert "\n" not in line
    parsed = json.loads(line)
    assert (parsed["level"], parsed["logger"], parsed["event"]) == ("error", "conversations", "turn t1")
    assert parsed["exception"].endswith("ValueError: first\nsecond")
    assert parsed["timestamp"].endswith("+00:00")


def test_a_terminal_line_is_text() -> None:
    record = logging.LogRecord("conversations", logging.WARNING, "x.py", 1, "slow", (), None)
    assert formatter(as_json=False).format(record).endswith(" WARNING conversations: slow")


def test_fields_are_in_the_line_and_secrets_are_not() -> None:
    fields = {"request_id": "req_1", "preview": '{"authorization_token": "mcp-canary", "a": "Bearer bearer-canary"}'}
    for as_json in (True, False):
        record = logging.LogRecord("conversations", logging.DEBUG, "x.py", 1, "anthropic.raw", (), None)
        record.__dict__["fields"] = fields | {"url": "redis://:url-canary@host/0", "own": "configured-canary"}
        line = formatter(as_json=as_json, secrets=("configured-canary",)).format(record)
        assert "anthropic.raw" in line
        assert "req_1" in line
        assert "canary" not in line
