"""Who may sign in, and what they may do."""

from typing import Any

from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import ManyToManyField
from django.forms import ModelMultipleChoiceField
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from conversations.admin import grants
from conversations.admin.paginator import BoundedPaginator

admin.site.unregister(User)
admin.site.unregister(Group)
# What has expired goes with the next sign-in that fails. Axes' action for it fails itself, and asks for no permission.
admin.site.get_model_admin(AccessAttempt).actions = ()


class Grants(ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic only in the stubs
    def label_from_instance(self, obj: Permission) -> str:
        return grants.words(obj)


class GrantingAdmin(ModelAdmin):
    """Permissions in words, those that decide about something."""

    def formfield_for_manytomany(
        self, db_field: "ManyToManyField[Any, Any]", request: HttpRequest, **options: Any
    ) -> "ModelMultipleChoiceField[Any] | None":
        if db_field.name in {"permissions", "user_permissions"}:
            options |= {"queryset": grants.grantable(), "form_class": Grants}
        field: ModelMultipleChoiceField[Any] | None = super().formfield_for_manytomany(db_field, request, **options)
        return field


@admin.register(User)
class OperatorAdmin(DjangoUserAdmin, GrantingAdmin):  # type: ignore[type-arg]  # generic only in the stubs
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "is_superuser", "last_login")
    paginator = BoundedPaginator


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, GrantingAdmin):
    paginator = BoundedPaginator
