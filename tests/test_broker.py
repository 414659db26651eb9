"""The file broker of one machine."""

from collections.abc import Iterator
from pathlib import Path
from queue import Empty
from typing import Any

import pytest

from bridge_project import celery, settings


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Any]:
    folders = {name: str(tmp_path) for name in ("data_folder_in", "data_folder_out", "control_folder")}
    options = {**settings.CELERY_BROKER_TRANSPORT_OPTIONS, **folders}
    with celery.app.connection(transport_options=options) as connection, connection.SimpleQueue("work") as made:
        yield made


def test_what_is_put_is_taken(queue: Any) -> None:
    for number in range(3):
        queue.put({"number": number, "words": "größer \u2028 als 💡"})
    taken = [queue.get_nowait().payload for _ in range(3)]
    assert sorted(each["number"] for each in taken) == [0, 1, 2]
    assert taken[0]["words"] == "größer \u2028 als 💡"


def test_a_message_is_not_to_be_had_while_it_is_written(queue: Any, tmp_path: Path) -> None:
    channel = queue.channel

    class Looking:
        def __json__(self) -> str:
            with pytest.raises(Empty):
                channel._get("work")
            return "looked"

    channel._put("work", {"body": Looking()})
    assert channel._get("work") == {"body": "looked"}
    assert [path.name for path in tmp_path.glob("*.part")] == []
