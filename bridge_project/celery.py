"""The Celery application: broker, schedule and options come from the CELERY_* settings."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")

app = Celery("toolbridge")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
