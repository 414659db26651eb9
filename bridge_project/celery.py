"""The Celery application: broker, schedule and options come from the CELERY_* settings."""

import os

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")

TRANSPORT_ALIASES["filesystem"] = "bridge_project.broker:Transport"

app = Celery("toolbridge")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
