"""Everything that Django's stock handler serves."""

from django.contrib import admin
from django.urls import path

from bridge_project import health
from conversations.api.urls import api

urlpatterns = [
    path("livez", health.livez),
    path("readyz", health.readyz),
    path("admin/", admin.site.urls),
    path("", api.urls),
]
