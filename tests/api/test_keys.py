"""What a key may do, on every path, and for how long."""

import pytest

from tests.api.conftest import Served
from tests.servers import chat
from tests.servers.client import Client, body
from tests.servers.ports import wait_until


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens", "/anthropic/v1/messages/count_tokens"])
def test_a_model_that_a_key_may_not_use_is_403_on_every_path(client: Client, served: Served, path: str) -> None:
    served.records.change(client.api_key, allowed_routes="claude-haiku-*")
    served.chat(chat.text("Hello."))
    response = client.http.post(path, json=body("Hi"))
    assert (response.status_code, response.json()["error"]["type"]) == (403, "permission_error")
    assert response.json()["error"]["message"] == "model: this key may not use claude-sonnet-4-5"
    served.records.change(client.api_key, allowed_routes="claude-*")

    def may() -> bool:
        return client.http.post(path, json=body("Hi")).status_code == 200

    wait_until(may, "the key may use it")
