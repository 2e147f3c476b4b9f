#!/usr/bin/env python3
"""produce.py BOOTSTRAP SENT

What librdkafka and kafka-python make of the same records with every codec, as they are
and in transactions of which every other one is aborted; appends to SENT how many.
"""

import json
import random
import sys

import confluent_kafka
import kafka

CODECS = "none", "gzip", "snappy", "lz4", "zstd"
LEVELS = {"gzip": 1, "lz4": 12, "zstd": 10}  # of librdkafka's transactions
START = 1_700_000_000_000


def records(seed):
    """(timestamp, key, value, headers): sizes from nothing to larger than a codec's block."""
    rng = random.Random(seed)
    for i in range(2000):
        length = rng.choice((0, 1, 10, 100, 100, 1000)) if i % 200 else 200_000
        text = b" ".join(b"%d" % rng.randrange(300) for _ in range(length // 3 + 1))[:length]
        value = rng.randbytes(length) if i % 10 == 0 else None if i % 11 == 0 else text
        # kafka-python wants at least one of the two.
        key = None if i % 7 == 0 and value is not None else b"key-%d" % rng.randrange(100)
        headers = [("a", b"1"), ("a", b""), ("\u00fc\u6f22", rng.randbytes(40))]
        headers = headers if i % 13 == 0 else []
        yield START + 10 * i - rng.randrange(100), key, value, headers


class Librdkafka:
    name = f"librdkafka {confluent_kafka.libversion()[0]}"

    def __init__(self, bootstrap, codec, transactional_id):
        config = {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "enable.idempotence": codec != "gzip",
            "linger.ms": 1000,
        }
        if transactional_id:
            config |= {"transactional.id": transactional_id, "enable.idempotence": True}
            config["compression.level"] = LEVELS.get(codec, -1)
        self.producer = confluent_kafka.Producer(config)

    def init(self):
        self.producer.init_transactions(30)

    def send(self, topic, timestamp, key, value, headers):
        self.producer.produce(
            topic, value, key, 0, timestamp=timestamp, headers=headers, on_delivery=self.delivered
        )
        self.producer.poll(0)

    @staticmethod
    def delivered(error, _message):
        if error:
            raise confluent_kafka.KafkaException(error)

    def flush(self):
        if self.producer.flush(30):
            raise TimeoutError("librdkafka has not sent everything within 30 s")

    def begin(self):
        self.producer.begin_transaction()

    def end(self, commit):
        self.flush()
        (self.producer.commit_transaction if commit else self.producer.abort_transaction)(30)

    def close(self):
        self.flush()


class KafkaPython:
    name = f"kafka-python {kafka.__version__}"

    def __init__(self, bootstrap, codec, transactional_id):
        self.producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            enable_idempotence=codec != "gzip" or bool(transactional_id),
            transactional_id=transactional_id,
            linger_ms=1000,
        )
        self.sent = []

    def init(self):
        self.producer.init_transactions()

    def send(self, topic, timestamp, key, value, headers):
        self.sent.append(self.producer.send(topic, value, key, headers, 0, timestamp))

    def flush(self):
        self.producer.flush(30)
        for sent in self.sent:
            sent.get(30)
        self.sent = []

    def begin(self):
        self.producer.begin_transaction()

    def end(self, commit):
        self.flush()
        (self.producer.commit_transaction if commit else self.producer.abort_transaction)()

    def close(self):
        self.producer.close()


def produce(client, bootstrap, codec, seed):
    """Yields (topic, records sent)."""
    name = client.name.split()[0]
    topic = f"{name}-{codec}"
    producer = client(bootstrap, codec, None)
    sent = list(records(seed))
    for number, record in enumerate(sent, 1):
        producer.send(topic, *record)
        if number % 40 == 0:
            producer.flush()
    producer.close()
    yield topic, len(sent)

    topic = f"{name}-transactions-{codec}"
    producer = client(bootstrap, codec, topic)
    producer.init()
    for start in range(0, 600, 100):
        producer.begin()
        for record in sent[start : start + 100]:
            producer.send(topic, *record)
        producer.end(commit=start % 200 == 0)
    producer.close()
    yield topic, 600


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[2], "a", encoding="utf-8") as output:
        for client in Librdkafka, KafkaPython:
            print(client.name)
            for seed, codec in enumerate(CODECS):
                for topic, sent in produce(client, sys.argv[1], codec, seed):
                    print(json.dumps({"topic": topic, "sent": sent}), file=output)


if __name__ == "__main__":
    main()
