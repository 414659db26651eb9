"""What a process remembers of conversations is bounded by how many of them it remembers."""

import pytest

from conversations import ids, state
from conversations.conversation import Sent
from conversations.store import Store
from conversations.store.reads import Node
from translation.client.identity import Identity
from translation.values import Link, Origin


def test_what_leads_to_a_forgotten_conversation_is_forgotten_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "CONVERSATIONS", 3)
    known = state.State(Store("off"), ids.RowIds(1))
    for number in range(10):
        conversation = known._fresh(1, f"c-{number}", "header", Identity())
        origin = Origin("openai", "gpt-test")
        known.note_links(conversation, [Link(f"toolu_{number}", "get_weather", "get_weather", "call_1", b"{}", origin)])
        known.note_answer(conversation, Node(bytes([number]) * 16, 1, 1), number, origin)
        known.note_sent(conversation, Sent(number, 0, b"body"))
    caches = (known._conversations, known._names, known._tools, known._hashes, known._sent)
    assert [len(cache) for cache in caches] == [3] * len(caches)
    assert known._sent_size == 3 * len(b"body")
