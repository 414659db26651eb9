"""The sidebar."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    return [
        {
            "items": [
                {"title": "Overview", "icon": "monitoring", "link": reverse("admin:index")},
                {"title": "Connect", "icon": "cable", "link": reverse("connect")},
            ]
        },
        {
            "title": "Traffic",
            "items": [
                _item(request, "Conversations", "forum", "conversation"),
                _item(request, "Turns", "swap_vert", "turn"),
                _item(request, "Tool calls", "build", "toolmapping"),
                _item(request, "Hosted runs", "smart_toy", "toolexecution"),
                _item(request, "Replays", "replay", "replay"),
                _item(request, "Usage", "payments", "usageentry"),
            ],
        },
        {
            "title": "Routing",
            "items": [
                _item(request, "Routes", "alt_route", "route"),
                _item(request, "Upstreams", "dns", "upstream"),
                _item(request, "Lessons", "school", "learned"),
                _item(request, "Resting", "bedtime", "rest"),
            ],
        },
        {
            "title": "Hosted tools",
            "items": [
                _item(request, "Tools", "construction", "hostedtool"),
                _item(request, "Secrets", "lock", "toolsecret"),
            ],
        },
        {
            "title": "Access",
            "items": [
                _item(request, "API keys", "key", "apikey"),
                _item(request, "Operators", "person", "user", "auth"),
                _item(request, "Groups", "group", "group", "auth"),
                _item(request, "Audit", "policy", "logentry", "admin"),
            ],
        },
        {"title": "Cost", "items": [_item(request, "Prices", "sell", "price")]},
        {"title": "System", "items": [_item(request, "Processes", "memory", "process")]},
    ]


def _item(request: HttpRequest, title: str, icon: str, model: str, app: str = "conversations") -> dict[str, Any]:
    user = request.user
    return {
        "title": title,
        "icon": icon,
        "link": reverse(f"admin:{app}_{model}_changelist"),
        "permission": lambda _: user.has_perm(f"{app}.view_{model}"),
    }
