"""What an operator can be allowed, in words. Whatever else Django makes a permission of changes nothing here."""

from django.contrib.auth.models import Permission
from django.db.models import Q, QuerySet
from django.utils.text import capfirst

from conversations import wording

SEEN = frozenset({
    "apikey", "conversation", "hostedtool", "learned", "price", "process", "replay", "rest", "route", "toolexecution",
    "toolmapping", "toolsecret", "turn", "upstream", "usageentry",
})  # fmt: skip
EDITED = frozenset({"hostedtool", "price", "route", "toolsecret", "upstream"})
VERBS = {"view": "see", "add": "add", "change": "change", "delete": "delete"}
ACTS = {
    "view_content": "read what was said",
    "change_conversation": "hold, release, terminate, purge",
    "delete_toolmapping": "forget",
    "delete_learned": "forget",
    "add_replay": "run a turn again",
    "add_apikey": "issue",
    "change_apikey": "change, rotate, revoke",
    "change_upstream": "change, put to rest, wake",
}
OPERATORS = frozenset({"user", "group"})


def grantable() -> "QuerySet[Permission]":
    edits = [f"{verb}_{model}" for model in EDITED for verb in VERBS]
    own = Q(codename__in=[*(f"view_{model}" for model in SEEN), *edits, *ACTS], content_type__app_label="conversations")
    audit = Q(codename="view_logentry", content_type__app_label="admin")
    access = Q(content_type__app_label="auth", content_type__model__in=OPERATORS)
    # Deleting one lets in who is locked out.
    sign_ins = Q(content_type__app_label="axes", codename__regex="^(view|delete)_")
    return Permission.objects.filter(own | audit | access | sign_ins).select_related("content_type")


def words(permission: Permission) -> str:
    model = permission.content_type.model_class()
    name = str(model._meta.verbose_name_plural) if model else permission.content_type.model
    verb = permission.codename.partition("_")[0]
    return f"{capfirst(wording.NAMES.get(name, name))}: {ACTS.get(permission.codename, VERBS.get(verb, verb))}"
