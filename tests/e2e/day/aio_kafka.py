"""A day's work of aiokafka: `aio_kafka.py BOOTSTRAP TOPIC GROUP` (see test_day.py)."""

import asyncio
import sys
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

BOOTSTRAP, TOPIC, GROUP = sys.argv[1:4]
PARTITIONS = 6


async def produce(first: int, count: int) -> None:
    async with AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, enable_idempotence=True, linger_ms=5) as producer:
        sent = [
            await producer.send(TOPIC, key=b"%d" % number, value=b"%d" % number, partition=number % PARTITIONS)
            for number in range(first, first + count)
        ]
        await asyncio.wait_for(asyncio.gather(*sent), 30)


class Member:
    """A consumer in the group that commits what each poll gave it."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.partitions: set[int] = set()
        self.leaving = False
        self.task = asyncio.create_task(self.work())

    async def work(self) -> None:
        consumer = AIOKafkaConsumer(
            TOPIC, bootstrap_servers=BOOTSTRAP, group_id=GROUP, enable_auto_commit=False,
            auto_offset_reset="earliest", heartbeat_interval_ms=300,
        )
        async with consumer:
            while not self.leaving:
                polled = await consumer.getmany(timeout_ms=200)
                self.seen |= {int(record.value) for records in polled.values() for record in records}
                if polled:
                    await consumer.commit()
                self.partitions = {one.partition for one in consumer.assignment()}

    async def leave(self) -> None:
        self.leaving = True
        await asyncio.wait_for(self.task, 30)


async def wait_until(what: str, members: list[Member], condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"not within 60 s: {what}"
        for member in members:
            if member.task.done() and not member.leaving:
                member.task.result()  # raises what ended it
        await asyncio.sleep(0.05)


async def wait_for_shares(members: list[Member]) -> None:
    share = PARTITIONS // len(members)

    def shared() -> bool:
        owned = sorted(one for member in members for one in member.partitions)
        return owned == list(range(PARTITIONS)) and all(len(m.partitions) == share for m in members)

    await wait_until(f"{len(members)} members with {share} partitions each", members, shared)


async def wait_for_records(everybody: list[Member], count: int) -> None:
    def seen() -> set[int]:
        return set().union(*(member.seen for member in everybody))

    await wait_until(f"{count} records", everybody, lambda: seen() == set(range(count)))


async def check_committed_and_seek() -> None:
    consumer = AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=GROUP, enable_auto_commit=False)
    async with consumer:
        partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
        consumer.assign(partitions)
        committed = [await consumer.committed(one) for one in partitions]
        assert committed == [200] * PARTITIONS, committed
        consumer.assign(partitions[:1])
        consumer.seek(partitions[0], 50)
        record = await asyncio.wait_for(consumer.getone(), 20)
        assert (record.offset, record.value) == (50, b"%d" % (50 * PARTITIONS)), record


async def main() -> None:
    await produce(0, 600)
    first, second, third = everybody = [Member() for _ in range(3)]
    await wait_for_shares(everybody)
    await wait_for_records(everybody, 600)

    await third.leave()
    await wait_for_shares([first, second])
    await produce(600, 300)
    await wait_for_records(everybody, 900)

    fourth = Member()
    everybody.append(fourth)
    await wait_for_shares([first, second, fourth])
    await produce(900, 300)
    await wait_for_records(everybody, 1200)
    for member in (first, second, fourth):
        await member.leave()

    await check_committed_and_seek()
    await produce(1200, 60)
    resumed = Member()
    await wait_until("the 60 records behind the committed offsets", [resumed], lambda: len(resumed.seen) == 60)
    assert resumed.seen == set(range(1200, 1260)), sorted(resumed.seen)
    await resumed.leave()


asyncio.run(main())
