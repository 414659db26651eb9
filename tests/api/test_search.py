"""The search on PostgreSQL; tests/admin/test_search.py has what it finds, and SQLite."""

import json

import pytest

from tests.api.conftest import Connect, Served
from tests.api.test_retention import manage
from tests.servers import chat
from tests.servers.client import Client

TERMS = ("test_half_cents", "café", '"no such file"', "overlo*", "世界", "billing", '"file such"', "nowhere")
ASK = (
    "import json; from conversations import search; search.index(60);"
    f"print(json.dumps([len(search.turns(term)) for term in {TERMS!r}]))"
)


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_words_are_found_until_they_are_deleted(client: Client, served: Served, connect: Connect) -> None:
    discreet = connect(served, storage="metadata")
    text = "The café's test_half_cents: no such file, overloaded, 你好世界, /srv/billing/core.py"
    for asking in (client, discreet):
        served.chat(chat.text(text))
        assert asking.ask("Hello", headers={"x-conversation-id": "one"}).status_code == 200
        served.records.ended(asking.api_key, 1)
    assert json.loads(manage(served, "shell", "-v", "0", "-c", ASK)) == [1, 1, 1, 1, 1, 1, 0, 0]
    client.http.post("/v1/conversations/one/terminate")
    assert set(json.loads(manage(served, "shell", "-v", "0", "-c", ASK))) == {0}
