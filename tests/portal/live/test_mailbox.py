import asyncio

from portal.live.mailbox import MISSED, Mailbox


async def everything(box: Mailbox) -> list[str]:
    return [await box.take() for _ in range(len(box))]


async def test_events_come_out_in_the_order_in_which_they_came() -> None:
    box = Mailbox()
    for text in ("one", "two", "three"):
        box.put(text)

    assert await everything(box) == ["one", "two", "three"]


async def test_of_a_meter_only_the_newest_reading_is_kept() -> None:
    box = Mailbox()
    for reading in range(5000):
        box.put(str(reading), newest_only="workload:a")
    box.put("other", newest_only="workload:b")

    assert await everything(box) == ["4999", "other"]


async def test_a_browser_that_does_not_read_is_told_that_it_missed_something() -> None:
    box = Mailbox(most=10)
    for number in range(1000):
        box.put(str(number))
        assert len(box) <= 10

    assert (await everything(box))[0] == MISSED


async def test_taking_waits_for_the_next_event() -> None:
    box = Mailbox()
    waiting = asyncio.create_task(box.take())
    await asyncio.sleep(0)
    assert not waiting.done()

    box.put("now")

    assert await waiting == "now"
