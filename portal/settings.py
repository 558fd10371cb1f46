"""All settings, read from environment variables once. docs/settings.md lists them.

Without any variable this is the embedded default: SQLite below ./var, a Redis server on this machine, plain http on
the loopback address. With a PostgreSQL address in DATABASE_URL it is a served portal, and SECRET_KEY and BERTH_URL
have to be given.
"""

from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from portal import environment as read
from portal.logs import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent
FOLDER = Path(read.env("BERTH_FOLDER", str(BASE_DIR / "var"))).resolve()

DEBUG = read.envbool("BERTH_DEBUG", default=False)
BERTH_DEMO = read.envbool("BERTH_DEMO", default=False)
BERTH_ZONE = read.envzone("BERTH_ZONE", "UTC")  # days and months are cut in this zone
BERTH_CURRENCY = read.envcurrency("BERTH_CURRENCY", "EUR")

# Tables

DATABASES = {
    "default": read.envdatabase("DATABASE_URL", FOLDER, pool=read.envint("BERTH_DATABASE_POOL", 16, least=0, most=200))
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
EMBEDDED = DATABASES["default"]["ENGINE"].endswith("sqlite3")
if EMBEDDED:
    DATABASES["default"]["NAME"].parent.mkdir(parents=True, exist_ok=True)

# Who may talk to us, and how

SECRET_KEY = read.envsecret("SECRET_KEY")
if not SECRET_KEY and not EMBEDDED:
    raise ImproperlyConfigured("SECRET_KEY is not set; give it, or SECRET_KEY_FILE, at least 50 random characters.")
if SECRET_KEY and len(SECRET_KEY) < 50:
    raise ImproperlyConfigured(f"SECRET_KEY has {len(SECRET_KEY)} characters; use at least 50 random ones.")
SECRET_KEY = SECRET_KEY or read.kept_secret(FOLDER / "secret_key")

if not EMBEDDED and not read.env("BERTH_URL"):
    raise ImproperlyConfigured("BERTH_URL is not set; write the portal's own address: https://berth.example.org.")
ORIGIN = read.envorigin("BERTH_URL", "http://127.0.0.1:8000", insecure=DEBUG or BERTH_DEMO)
BERTH_URL = ORIGIN.geturl().rstrip("/")
HTTPS = ORIGIN.scheme == "https"
ALLOWED_HOSTS = [str(ORIGIN.hostname), *read.envlist("BERTH_HOSTS"), *(() if HTTPS else read.LOOPBACK)]
CSRF_TRUSTED_ORIGINS = [BERTH_URL]

SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^health$", r"^ready$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

SESSION_COOKIE_NAME = "__Host-session" if HTTPS else "session"
SESSION_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
CSRF_COOKIE_NAME = "__Host-csrf" if HTTPS else "csrf"
CSRF_COOKIE_SECURE = HTTPS
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],  # covers this host's WebSockets too
        "manifest-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}

# People

AUTH_USER_MODEL = "tenants.User"
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# What it is made of

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    "django_htmx",
    "csp",
    "channels",
    "tenants",
    "tenants.billing",
    "scheduling",
    "portal",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "portal.files.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "portal.refusals.Refusals",
]
ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
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
                "portal.pages.context.around",
            ]
        },
    }
]

# Static files: found where they are written, or, with BERTH_STATIC_ROOT, where `collectstatic` put them for good

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = Path(read.env("BERTH_STATIC_ROOT")).resolve() if read.env("BERTH_STATIC_ROOT") else None
COLLECTED = "whitenoise.storage.CompressedManifestStaticFilesStorage"  # names files by their content
FOUND = "django.contrib.staticfiles.storage.StaticFilesStorage"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": COLLECTED if STATIC_ROOT else FOUND},
}
WHITENOISE_USE_FINDERS = not STATIC_ROOT
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_ALLOW_ALL_ORIGINS = False
MEDIA_ROOT = FOLDER / "media"

# Language and time

LANGUAGE_CODE = "en-gb"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
FIRST_DAY_OF_WEEK = 1

# Messages and work in the background

REDIS_URL = read.envurl("REDIS_URL", "redis://127.0.0.1:6379/0", schemes=("redis", "rediss", "unix")).geturl()
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.core.RedisChannelLayer",
        "CONFIG": {"hosts": [{"address": REDIS_URL}], "prefix": "berth", "capacity": 1000, "expiry": 30},
    }
}

BERTH_TICK_SECONDS = read.envseconds("BERTH_TICK_SECONDS", 10, least=0.1, most=3600)
BERTH_SILENCE_SECONDS = read.envseconds("BERTH_SILENCE_SECONDS", 90, least=1, most=300)
BERTH_LOOK_SECONDS = read.envseconds("BERTH_LOOK_SECONDS", 60, least=0.1, most=3600)
BERTH_SAMPLE_SECONDS = read.envseconds("BERTH_SAMPLE_SECONDS", 30, least=0.1, most=3600)
BERTH_RATE_SECONDS = read.envseconds("BERTH_RATE_SECONDS", 60, least=0.1, most=3600)

CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # however long it is away: a worker that gave up would need somebody
CELERY_BROKER_CHANNEL_ERROR_RETRY = True  # a server that is full, or a replica for a while, ends no worker either
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "global_keyprefix": "berth:",
    # No page waits long for a message server: a bell that does not ring at once is not rung; the next tick looks.
    "max_retries": 0,
    "socket_connect_timeout": 1.0,
    "socket_timeout": 2.0,
}
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_STORE_ERRORS_EVEN_IF_IGNORED = False
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_BEAT_SCHEDULE_FILENAME = str(FOLDER / "beat")
# A bell that nobody heard in time is dropped: the next one rings soon.
CELERY_BEAT_SCHEDULE = {
    task: {"task": task, "schedule": seconds, "options": {"expires": max(3 * seconds, 5.0)}}
    for task, seconds in {
        "scheduling.tick": BERTH_TICK_SECONDS,
        "scheduling.sample": BERTH_SAMPLE_SECONDS,
        "scheduling.rate": BERTH_RATE_SECONDS,
    }.items()
}

# The API

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_PAGINATION_CLASS": "portal.paging.Pages",
    "DEFAULT_SCHEMA_CLASS": "portal.api.openapi.DoorSchema",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Berth",
    "DESCRIPTION": "GPU tenancy on Kubernetes: ask for GPUs, decide who may hold how much, see what it cost.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": ["portal.api.openapi.add_refusals"],
    "GET_LIB_DOC_EXCLUDES": "portal.api.openapi.undescribed",
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "persistAuthorization": False, "validatorUrl": ""},
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# What it says

LOGGING_CONFIG = None
LOGGING = logging_config(
    level=read.envchoice("BERTH_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR")), readable=DEBUG
)


# A variable of ours that nobody reads is misspelt

OF_OTHERS = {"BERTH_CLOCK", "BERTH_WATCH"}  # tenants/clock.py, portal/celery.py; tests and judges
OF_TOOLS = {"BERTH_BROWSER", "BERTH_REPORT", "BERTH_SESSION", "BERTH_CSRF"}
OF_CONTRACT = {f"BERTH_CONTRACT_{part}" for part in ("SERVER", "TOKEN_FILE", "AUTHORITY_FILE")}
read.refuse_unknown(OF_OTHERS | OF_TOOLS | OF_CONTRACT)
