"""What Celery runs."""

import importlib
from typing import Any

from celery import shared_task

from conversations import retention, search
from conversations.models import ToolExecution


@shared_task(name="conversations.tasks.purge_inactive")
def purge_inactive() -> int:
    return retention.purge().conversations


@shared_task(name="conversations.tasks.reconcile_turns")
def reconcile_turns() -> int:
    return retention.reconcile()


@shared_task(name="conversations.tasks.index_text")
def index_text() -> int:
    return search.index(age=search.AGE)


@shared_task(name="conversations.tasks.run_tool")
def run_tool(conversation: int, tool_use_id: str) -> None:
    _worker().start(conversation, tool_use_id)


@shared_task(name="conversations.tasks.requeue_tools")
def requeue_tools() -> int:
    waiting = ToolExecution.objects.filter(long_running=True, status__in=("queued", "running"))
    return int(_worker().requeue()) if waiting.exists() else 0


def _worker() -> Any:
    """Loaded with the first long-running tool: most machines have none, and it is half of the bridge."""
    return importlib.import_module("conversations.hosted.worker")
