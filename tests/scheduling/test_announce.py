"""X6: telling open pages costs no connection each."""

import redis

from scheduling import announce


def test_x6_ten_thousand_events_hold_one_connection(valkey, settings):
    _, settings.REDIS_URL = valkey
    announce.connection.cache_clear()
    watcher = redis.Redis.from_url(settings.REDIS_URL)
    before = len(watcher.client_list())
    for number in range(100):
        announce.send([{"topic": "fleet", "what": "meter", "number": number}] * 99)
        announce.announce("fleet", "fleet", number=number)

    assert len(watcher.client_list()) <= before + 1
    assert watcher.info("commandstats")["cmdstat_publish"]["calls"] == 10_000
    announce.connection().close()
    announce.connection.cache_clear()
    watcher.close()
