"""Long-running tools are handed to Celery. Only a hint goes through the broker: the row is the truth."""

import asyncio
import importlib
import logging

from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)

TASK = "conversations.tasks.run_tool"


async def enqueue(conversation: int, tool_use_id: str) -> None:
    await asyncio.to_thread(hand_over, conversation, tool_use_id)


def hand_over(conversation: int, tool_use_id: str) -> None:
    try:
        # A web process has no other use for Celery: it is loaded when the first long-running tool is called.
        importlib.import_module("bridge_project.celery").app.send_task(TASK, args=[conversation, tool_use_id])
    except (OperationalError, OSError) as error:
        # Beat looks for runs that nobody has.
        log.error("hosted.queue is unavailable: %s", error)
