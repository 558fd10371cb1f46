"""The guards and fixtures of conftest.py do what the tests rely on."""

from __future__ import annotations

import os
import socket
from datetime import timedelta as td
from subprocess import Popen
from typing import Any

import psycopg
import pytest
import redis
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import connection, connections

from portal.processes import stop
from tenants import clock as real_clock
from tests.conftest import MORNING, Clock


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80)])
def test_a_test_cannot_leave_this_machine(address: tuple[str, int]) -> None:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    with pytest.raises(pytest.fail.Exception, match="tests stay on this machine"), socket.socket(family) as line:
        line.connect(address)


def test_the_clock_stands_until_it_is_moved(clock: Clock) -> None:
    assert real_clock.now() == real_clock.now() == MORNING
    clock.advance(minutes=90)
    assert real_clock.now() == MORNING + td(minutes=90)


def test_the_database_is_the_one_that_was_asked_for(db: None, pytestconfig: pytest.Config) -> None:
    vendor = {"postgres": "postgresql", "sqlite": "sqlite"}[pytestconfig.getoption("--database")]
    assert connection.vendor == vendor


@pytest.mark.postgres
def test_a_test_for_postgresql_never_meets_sqlite(db: None) -> None:
    assert connection.vendor == "postgresql"


@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
def test_sqlite_lives_in_a_file_and_writes_ahead() -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        assert cursor.fetchone() == ("wal",)
    assert connections["default"].settings_dict["NAME"].endswith("test.sqlite3")


def test_settings_do_not_come_from_the_caller_s_environment() -> None:
    assert "berth" in str(settings.FOLDER)
    assert os.environ["REDIS_URL"] == settings.REDIS_URL


def test_the_message_server_is_a_real_one(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()


def test_a_server_of_a_test_s_own_may_be_broken(valkey: tuple[Popen[bytes], str], redis_url: str) -> None:
    process, address = valkey
    stop(process)
    with redis.Redis.from_url(address) as client, pytest.raises(redis.ConnectionError):
        client.ping()
    with redis.Redis.from_url(redis_url) as client:
        assert client.ping()


def test_a_database_of_a_test_s_own_is_empty(postgres: tuple[Popen[bytes], str]) -> None:
    with psycopg.connect(postgres[1]) as own:
        assert own.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


async def test_a_group_hears_a_message(messages: Any) -> None:
    channel = await messages.new_channel()
    await messages.group_add("a", channel)
    await messages.group_send("a", {"type": "word"})
    assert await messages.receive(channel) == {"type": "word"}


async def test_groups_are_empty_at_the_start_of_the_next_test() -> None:
    layer = get_channel_layer()
    assert layer is not None
    channel = await layer.new_channel()
    await layer.group_add("b", channel)
    await layer.group_send("b", {"type": "only this"})
    assert await layer.receive(channel) == {"type": "only this"}


def test_ordinary_code_can_send_too() -> None:
    layer = get_channel_layer()
    assert layer is not None
    async_to_sync(layer.group_send)("a", {"type": "word"})


def test_tasks_run_where_they_are_called() -> None:
    from portal.celery import app

    @app.task(name="tests.double")
    def double(number: int) -> int:
        return number * 2

    assert double.delay(21).get() == 42
