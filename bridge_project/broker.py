"""The file broker of one machine: kombu's, with messages that are there whole or not at all."""

import time
from pathlib import Path
from uuid import uuid4

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    def _put(self, queue: str, payload: object, **_: object) -> None:
        """kombu's own message has its name before it has its content. A worker that looks in between takes an empty
        one, which ends the worker, and the message is lost."""
        message = Path(self.data_folder_out, f"{time.monotonic_ns() // 1_000_000}_{uuid4()}.{queue}.msg")
        part = message.with_suffix(".part")
        try:
            part.write_text(dumps(payload), encoding="utf-8")
            part.rename(message)
        except OSError as error:
            raise ChannelError(f"{message} cannot be written") from error


class Transport(filesystem.Transport):
    Channel = Channel
