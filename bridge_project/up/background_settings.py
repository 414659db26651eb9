"""The settings without what only the web processes need: the admin, its theme and the API cost 40 MB to load."""

from bridge_project.settings import *  # noqa: F403

INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "conversations"]
