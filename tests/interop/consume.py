#!/usr/bin/env python3
"""consume.py BOOTSTRAP OURS

What consumers of librdkafka and kafka-python make of the topics in OURS/topics.jsonl: a line
a record in OURS/CLIENT-seen.jsonl, and for topics with transactions, read_committed, in
OURS/CLIENT-committed.jsonl, in the words of `Consume`. Starts when `Ours` has told in
OURS/told.jsonl where the topics end.
"""

import base64
import json
import sys
import time
from pathlib import Path

import confluent_kafka
import kafka

SECONDS = 90


def line(topic, offset, timestamp, timestamp_type, leader_epoch, key, value, headers):
    def text(field):
        return None if field is None else base64.b64encode(field).decode()

    return json.dumps(
        {
            "partition": f"{topic}-0",
            "offset": offset,
            "timestamp": timestamp,
            "timestamp_type": timestamp_type,
            "leader_epoch": leader_epoch,
            "key": text(key),
            "value": text(value),
            "headers": [[k, None if v is None else v.hex()] for k, v in headers or ()],
        }
    )


def librdkafka(bootstrap, isolation, ends):
    """Yields a line per record of all topics, up to their ends."""
    types = {
        confluent_kafka.TIMESTAMP_NOT_AVAILABLE: "NotAvailable",
        confluent_kafka.TIMESTAMP_CREATE_TIME: "CreateTime",
        confluent_kafka.TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
    }
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "check.crcs": True,
            "enable.partition.eof": True,
        }
    )
    start = confluent_kafka.OFFSET_BEGINNING
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, start) for topic in ends])
    left, deadline = set(ends), time.monotonic() + SECONDS
    while left and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.2):
            topic = message.topic()
            if message.error():
                if message.error().code() != confluent_kafka.KafkaError._PARTITION_EOF:
                    raise confluent_kafka.KafkaException(message.error())
                left.discard(topic)
            elif message.offset() < ends[topic]:
                kind, timestamp = message.timestamp()
                yield line(
                    topic,
                    message.offset(),
                    timestamp,
                    types[kind],
                    message.leader_epoch(),
                    message.key(),
                    message.value(),
                    message.headers(),
                )
            else:
                left.discard(topic)
    consumer.close()
    if left:
        sys.exit(f"librdkafka has not read all of {sorted(left)} within {SECONDS} s")


def kafka_python(bootstrap, isolation, ends):
    """As `librdkafka`."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        isolation_level=isolation,
        check_crcs=True,
        enable_auto_commit=False,
    )
    partitions = {kafka.TopicPartition(topic, 0): end for topic, end in ends.items()}
    consumer.assign(list(partitions))
    consumer.seek_to_beginning(*partitions)
    deadline = time.monotonic() + SECONDS
    while any(consumer.position(partition) < end for partition, end in partitions.items()):
        if time.monotonic() > deadline:
            sys.exit(f"kafka-python has not read everything within {SECONDS} s")
        for partition, records in consumer.poll(200, max_records=5000).items():
            for record in records:
                if record.offset < partitions[partition]:
                    yield line(
                        partition.topic,
                        record.offset,
                        record.timestamp,
                        ("CreateTime", "LogAppendTime")[record.timestamp_type],
                        record.leader_epoch,
                        record.key,
                        record.value,
                        record.headers,
                    )
    consumer.close()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    bootstrap, ours = sys.argv[1], Path(sys.argv[2])
    told, deadline = ours / "told.jsonl", time.monotonic() + SECONDS
    while not told.exists():
        if time.monotonic() > deadline:
            sys.exit(f"the broker's word on our topics has not come within {SECONDS} s")
        time.sleep(0.1)
    lines = [json.loads(line) for line in told.read_text().splitlines()]
    for client in librdkafka, kafka_python:
        name = client.__name__.replace("_", "-")
        for output, isolation, end in (
            ("seen", "read_uncommitted", "end"),
            ("committed", "read_committed", "stable"),
        ):
            ends = {
                line["partition"].removesuffix("-0"): line[end]
                for line in lines
                if output == "seen" or "-transactions-" in line["partition"]
            }
            with open(ours / f"{name}-{output}.jsonl", "w", encoding="utf-8") as file:
                for text in client(bootstrap, isolation, ends):
                    print(text, file=file)


if __name__ == "__main__":
    main()
