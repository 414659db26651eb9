"""What Celery runs."""

from celery import shared_task

from conversations import retention


@shared_task(name="conversations.tasks.purge_inactive")
def purge_inactive() -> int:
    return retention.purge().conversations


@shared_task(name="conversations.tasks.reconcile_turns")
def reconcile_turns() -> int:
    return retention.reconcile()
