"""Everything that Django's stock handler serves."""

from django.contrib import admin
from django.urls import path

from conversations.admin.connect_page import connect_page
from conversations.api import metrics, others
from conversations.api.urls import api

handler400 = "conversations.api.urls.bad_request"
handler403 = "conversations.api.urls.forbidden"
handler404 = "conversations.api.urls.not_found"
handler500 = "conversations.api.urls.failed"

urlpatterns = [
    path("", others.root),
    path("api/event_logging/batch", others.event_logging),
    path("api/hello", others.hello),
    path("metrics", metrics.view),
    path("admin/connect/", admin.site.admin_view(connect_page), name="connect"),
    path("admin/", admin.site.urls),
    path("", api.urls),
]
