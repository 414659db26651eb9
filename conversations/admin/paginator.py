"""Pages of tables that are too large to count: it counts to a limit, and says "more than" beyond it."""

from typing import Any, cast

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.utils.functional import cached_property

LIMIT = 5_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # generic only in the stubs
    template_name = "admin/conversations/pagination.html"

    @cached_property
    def count(self) -> int:
        """At most one more than the limit."""
        rows = cast("QuerySet[Any]", self.object_list).order_by().values("pk")[: LIMIT + 1]
        return rows.count()

    @property
    def more(self) -> bool:
        return self.count > LIMIT

    @property
    def limit(self) -> int:
        return LIMIT
