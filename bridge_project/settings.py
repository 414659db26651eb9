"""Settings, all from the environment (DESIGN.md section 2); nothing else reads it.

The supervisor reads this module without Django's set-up, so it imports nothing heavy.
"""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from bridge_project import environment
from bridge_project.databases import database
from bridge_project.secret import stored_key

BASE_DIR = Path(__file__).resolve().parent.parent

HOST = environment.text("HOST", "127.0.0.1")
PORT = environment.integer("PORT", 8000, least=1, most=65535)
# Proxies, by the name that uvicorn has for it.
FORWARDED_ALLOW_IPS = environment.text("FORWARDED_ALLOW_IPS", "127.0.0.1")
WEB_WORKERS = environment.integer("WEB_WORKERS", 1, least=1, most=256)
HANG_SECONDS = environment.number("BRIDGE_HANG_SECONDS", 60.0)
BRIDGE_HOME = Path(environment.text("BRIDGE_HOME", str(BASE_DIR / "var"))).resolve()
BRIDGE_ENV = environment.choice("BRIDGE_ENV", ("development", "production"), "development")
PRODUCTION = BRIDGE_ENV == "production"

# Only `make dev` sets it; error pages with source and settings must not reach anybody else.
DEBUG = environment.flag("BRIDGE_DEBUG")
if PRODUCTION and DEBUG:
    raise ImproperlyConfigured("BRIDGE_DEBUG=1 is refused when BRIDGE_ENV=production")


def _secret_key() -> str:
    key = environment.optional("BRIDGE_SECRET_KEY")
    if key is None and PRODUCTION:
        raise ImproperlyConfigured("BRIDGE_ENV=production needs BRIDGE_SECRET_KEY (50 or more random characters)")
    return key or stored_key(BRIDGE_HOME)


def _allowed_hosts() -> list[str]:
    hosts = list(environment.words("BRIDGE_ALLOWED_HOSTS"))
    if PRODUCTION and (not hosts or "*" in hosts):
        raise ImproperlyConfigured("BRIDGE_ENV=production needs BRIDGE_ALLOWED_HOSTS (names, comma-separated, not *)")
    if hosts:
        return hosts
    # Bound to every address on purpose, the machine may be called by any of its names.
    return ["*"] if HOST in {"0.0.0.0", "::"} else ["localhost", "127.0.0.1", "[::1]", HOST]  # noqa: S104


SECRET_KEY = _secret_key()
ALLOWED_HOSTS = _allowed_hosts()

INSTALLED_APPS = [
    # It gives runserver its ASGI server, and every process that lists it thirty megabytes of Twisted.
    *(["daphne"] if DEBUG else []),
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "csp",
    "ninja",
    "conversations",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "bridge_project.static.StaticFiles",
    "bridge_project.csp.ContentSecurityPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "conversations.admin.viewer.remembered",
    "conversations.admin.impossible.Impossible",
    "conversations.api.cold.not_allowed",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # Last: it turns a sign-in that the others let pass into a lock-out page.
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "bridge_project.urls"
ASGI_APPLICATION = "bridge_project.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASE_URL = environment.optional("DATABASE_URL")
DATABASES = {"default": database(DATABASE_URL, BRIDGE_HOME)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# Memory-hard, and of the standard library; the others are for passwords that were set before.
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.ScryptPasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2SHA1PasswordHasher",
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_CALLABLE = "conversations.api.urls.locked_out"
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "bridge_project.formats"
USE_I18N = False
USE_TZ = True

LOGIN_URL = "/admin/login/"
LOGIN_REDIRECT_URL = "/admin/"

STATIC_URL = "/static/"
# Static files are served from the packages themselves, so that `make run` needs no collectstatic.
WHITENOISE_USE_FINDERS = True

SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PRODUCTION
CSRF_FAILURE_VIEW = "conversations.api.urls.forged"
SESSION_COOKIE_NAME = "toolbridge_session"
SECURE_SSL_REDIRECT = PRODUCTION
# Scrapers come from inside, without TLS.
SECURE_REDIRECT_EXEMPT = [r"^metrics$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = 31_536_000 if PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = PRODUCTION
# security.W021: asking browsers to preload HSTS is for the owner of the whole domain to decide, not for one service.
SILENCED_SYSTEM_CHECKS = ["security.W021"]
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "style-src": ["'self'", "'unsafe-inline'"],
        "script-src": ["'self'", "'unsafe-inline'"],
        "connect-src": ["'self'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
        "base-uri": ["'self'"],
        "object-src": ["'none'"],
    },
}

REDIS_URL = environment.service_url("REDIS_URL", "redis", "rediss", "unix")
CHANNEL_LAYERS = {
    "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer", "CONFIG": {"hosts": [REDIS_URL]}}
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"},
}

CELERY_BROKER_URL = (
    environment.broker_url("CELERY_BROKER_URL") or environment.redis_broker(REDIS_URL) or "filesystem://localhost/"
)
# Celery's filesystem transport wants its folders to be there; without it there are none.
BROKER_FOLDERS = (
    {"messages": BRIDGE_HOME / "broker" / "messages", "control": BRIDGE_HOME / "broker" / "control"}
    if CELERY_BROKER_URL.startswith("filesystem:")
    else {}
)
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {
        # One folder both ways: a message is written by one process of the machine and taken by another.
        "data_folder_in": str(BROKER_FOLDERS["messages"]),
        "data_folder_out": str(BROKER_FOLDERS["messages"]),
        "control_folder": str(BROKER_FOLDERS["control"]),
        "store_processed": False,
        "polling_interval": 0.25,
    }
    if BROKER_FOLDERS
    else {}
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"
# Each of these is worth doing only until it is due again; a worker that was away must not catch up on a pile.
CELERY_BEAT_SCHEDULE = {
    "purge-inactive": {"task": "conversations.tasks.purge_inactive", "schedule": 300.0, "options": {"expires": 300}},
    # At most a second of work each time: requests need the processors more than the search does.
    "index-text": {"task": "conversations.tasks.index_text", "schedule": 10.0, "options": {"expires": 10}},
    "requeue-tools": {"task": "conversations.tasks.requeue_tools", "schedule": 15.0, "options": {"expires": 15}},
    "reconcile-turns": {"task": "conversations.tasks.reconcile_turns", "schedule": 30.0, "options": {"expires": 30}},
}
CELERY_BEAT_SCHEDULE_FILENAME = str(BRIDGE_HOME / "beat-schedule")

BRIDGE_API_KEYS = environment.keys("BRIDGE_API_KEYS")
BRIDGE_ADMIN_USER = environment.text("BRIDGE_ADMIN_USER", "admin")
BRIDGE_ADMIN_PASSWORD = environment.optional("BRIDGE_ADMIN_PASSWORD")
BRIDGE_POLICY = environment.choice("BRIDGE_POLICY", ("agentic", "conservative"), "agentic")
BRIDGE_INACTIVITY_HOURS = environment.number("BRIDGE_INACTIVITY_HOURS", 24.0)
# 0: text is kept as long as its conversation.
BRIDGE_CONTENT_HOURS = environment.number("BRIDGE_CONTENT_HOURS", 0.0)
# A monthly budget needs a month of it.
BRIDGE_LEDGER_DAYS = environment.integer("BRIDGE_LEDGER_DAYS", 400, least=32, most=999_999_999)
BRIDGE_UPSTREAM_RETRIES = environment.integer("BRIDGE_UPSTREAM_RETRIES", 2, most=10)
BRIDGE_UPSTREAM_IDLE_SECONDS = environment.number("BRIDGE_UPSTREAM_IDLE_SECONDS", 300.0)
BRIDGE_PING_SECONDS = environment.number("BRIDGE_PING_SECONDS", 10.0)
BRIDGE_HOLD_SECONDS = environment.number("BRIDGE_HOLD_SECONDS", 15.0)
BRIDGE_UNSTORED_LINK = environment.choice("BRIDGE_UNSTORED_LINK", ("error", "warn"), "error")
BRIDGE_STORAGE = environment.choice("BRIDGE_STORAGE", ("durable", "off"), "durable")
# auto: unless a pooler is in between. On PostgreSQL only.
BRIDGE_PREPARED_STATEMENTS = environment.choice("BRIDGE_PREPARED_STATEMENTS", ("auto", "on", "off"), "auto")
BRIDGE_ENCRYPTION_KEYS = environment.words("BRIDGE_ENCRYPTION_KEYS")
BRIDGE_CORS_ORIGINS = environment.words("BRIDGE_CORS_ORIGINS")
BRIDGE_METRICS_TOKEN = environment.optional("BRIDGE_METRICS_TOKEN")
BRIDGE_TOOL_HOSTS = environment.words("BRIDGE_TOOL_HOSTS")
BRIDGE_TOOL_SECONDS = environment.number("BRIDGE_TOOL_SECONDS", 60.0)
BRIDGE_TOOL_TURN_SECONDS = environment.number("BRIDGE_TOOL_TURN_SECONDS", 600.0)
BRIDGE_TOOL_ROUNDS = environment.integer("BRIDGE_TOOL_ROUNDS", 20, most=100)
BRIDGE_TOOL_RESULT_BYTES = environment.integer("BRIDGE_TOOL_RESULT_BYTES", 1024 * 1024, most=16 * 1024 * 1024)
BRIDGE_LOG_LEVEL = environment.choice("BRIDGE_LOG_LEVEL", ("DEBUG", "INFO", "WARNING", "ERROR"), "INFO")

if PRODUCTION and BRIDGE_STORAGE == "off":
    raise ImproperlyConfigured("BRIDGE_STORAGE=off is for benchmarks and refused when BRIDGE_ENV=production")


KEY_PREFIX = "sk-tb-"  # of the keys that the bridge issues


def _is_ours(key: str) -> bool:
    return key.startswith(KEY_PREFIX) or key in BRIDGE_API_KEYS


def _upstream(prefix: str, url: str | None = None) -> tuple[tuple[str, ...], str | None]:
    """In the shell of a client, ANTHROPIC_API_KEY is a key of this bridge: it is nobody else's, and is sent to nobody.
    With an address it may be that of another bridge."""
    given = dict.fromkeys(environment.keys(f"{prefix}_API_KEYS") + environment.keys(f"{prefix}_API_KEY"))
    address = environment.http_url(url or f"{prefix}_BASE_URL")
    return tuple(key for key in given if address or not _is_ours(key)), address


# Provider (also its route prefix) -> (keys, base URL); configured when either is there.
BRIDGE_UPSTREAMS = {
    "openai": _upstream("OPENAI"),
    "openai-responses": _upstream("OPENAI"),
    "gemini": _upstream("GEMINI"),
    # ANTHROPIC_BASE_URL points clients at the bridge, so the upstream has its own variable.
    "anthropic": _upstream("ANTHROPIC", "ANTHROPIC_UPSTREAM_URL"),
    "minimax-m3": _upstream("MINIMAX"),  # first: the other's family holds its models too
    "minimax": _upstream("MINIMAX"),
    "xai": _upstream("XAI"),
    "xai-responses": _upstream("XAI"),
    "deepseek": _upstream("DEEPSEEK"),
    "moonshot": _upstream("MOONSHOT"),
    "zai": _upstream("ZAI"),
    "mistral": _upstream("MISTRAL"),
    "ollama": _upstream("OLLAMA"),
    "openrouter": _upstream("OPENROUTER"),
    "azure": _upstream("AZURE"),
    "vllm": _upstream("VLLM"),
}
BRIDGE_MODEL_MAP = {
    family: environment.optional(f"MODEL_MAP_{family.upper()}") for family in ("opus", "sonnet", "haiku", "default")
}

# Said at a start: what was given and does nothing.
CLIENTS_KEY_GIVEN = any(map(_is_ours, environment.words("ANTHROPIC_API_KEY"))) and not BRIDGE_UPSTREAMS["anthropic"][0]
UNKNOWN_VARIABLES = environment.unknown("BRIDGE_", "MODEL_MAP_")

# No log line holds one of these; `conversations.redaction` knows more of them by their looks.
SECRETS = (
    SECRET_KEY,
    *BRIDGE_API_KEYS,
    *BRIDGE_ENCRYPTION_KEYS,
    *filter(None, (BRIDGE_ADMIN_PASSWORD, BRIDGE_METRICS_TOKEN)),
    *filter(None, map(environment.password, (DATABASE_URL, REDIS_URL, CELERY_BROKER_URL))),
    *(key for keys, _ in BRIDGE_UPSTREAMS.values() for key in keys),
)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"lines": {"()": "bridge_project.logs.formatter", "as_json": PRODUCTION, "secrets": SECRETS}},
    "filters": {"brief": {"()": "bridge_project.logs.Brief"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines", "filters": ["brief"]}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "bridge_project": {"level": BRIDGE_LOG_LEVEL},
        "conversations": {"level": BRIDGE_LOG_LEVEL},
        "django": {"handlers": [], "level": "WARNING"},
    },
}

UNFOLD = {
    "SITE_TITLE": "Toolbridge",
    "SITE_HEADER": "Toolbridge",
    "SITE_SYMBOL": "linked_services",
    "SITE_URL": None,  # there is no other site to go back to
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "/static/conversations/icon.svg"}],
    "DASHBOARD_CALLBACK": "conversations.admin.overview.overview",
    "STYLES": ["/static/conversations/console.css"],
    "SCRIPTS": ["/static/conversations/console.js", "/static/conversations/live.js"],
    "SIDEBAR": {"show_search": False, "navigation": "conversations.admin.navigation.sidebar"},
}
