"""Logs: one JSON object a line to standard error, from our own code and from the libraries alike."""

import logging.config
from typing import Any

import structlog

SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
]
LONGEST = 2000  # characters of one text in a log line


def logging_config(level: str, *, readable: bool) -> dict[str, Any]:
    """The dictionary for `logging.config`; `readable` prints lines for people instead of JSON. Also sets structlog."""
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "lines": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [*SHARED, structlog.stdlib.PositionalArgumentsFormatter()],
                "processors": endings(readable=readable),
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {name: {"level": "WARNING"} for name in ("asyncio", "httpx", "urllib3", "uvicorn.access")},
    }
    logging.config.dictConfig(config)
    return config


def endings(*, readable: bool) -> list[structlog.typing.Processor]:
    """The last processors: they turn an event into the text of a line."""
    without_meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if readable:
        return [without_meta, structlog.dev.ConsoleRenderer(colors=False)]
    return [without_meta, structlog.processors.format_exc_info, shorten, structlog.processors.JSONRenderer(default=str)]


def shorten(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Cut over-long texts, so that nobody fills a disk with a long name."""
    return {key: clipped(value) for key, value in event.items()}


def clipped(value: Any) -> Any:
    too_long = isinstance(value, str) and len(value) > LONGEST
    return f"{value[:LONGEST]}… ({len(value)} characters)" if too_long else value
