#!/usr/bin/env python3
"""compare_ours.py STD_HOST WORK

Compares what Kafka's broker and consumers made of segments that std-host wrote, WORK/ours,
with what it put into them: the records of WORK/ours/written.jsonl, and for segments that it
recompressed those that the Java consumer saw before, WORK/seen.jsonl.
"""

import base64
import collections
import json
import re
import sys
import time
from pathlib import Path

import compare
from compare import compare_batches, compare_text, differs, read_dump, read_seen, split_dump

CLIENTS = "java", "librdkafka", "kafka-python"
FIELDS = "timestamp", "timestamp_type", "leader_epoch", "key", "value", "headers"
DAY = 86_400_000


def compare_seen(client, partition, written, seen):
    """What a consumer saw with what was written, both by offset."""
    for offset in sorted(written.keys() ^ seen.keys())[:3]:
        place = f"{partition}: offset {offset}: {client}"
        differs(f"{place}: is there", offset in written, offset in seen)
    for offset in written.keys() & seen.keys():
        for field in FIELDS:
            ours, theirs = written[offset][field], seen[offset][field]
            differs(f"{partition}: offset {offset}: {client}: {field}", ours, theirs)


def producers_of(batches):
    """The producer state that the batches make, but for producers that are forgotten."""
    producers = {}
    for batch in batches:
        # A control batch that is empty was cleaned, and says nothing.
        if batch["producer_id"] < 0 or batch["is_control"] and not batch["record_count"]:
            continue
        producer = producers.setdefault(
            batch["producer_id"],
            {"producer_epoch": -1, "coordinator_epoch": -1, "transaction_start": -1},
        )
        if batch["producer_epoch"] != producer["producer_epoch"]:
            producer["last_sequence"] = -1
        producer["producer_id"] = batch["producer_id"]
        producer["producer_epoch"] = batch["producer_epoch"]
        producer["last_timestamp"] = batch["max_timestamp"]
        if batch["is_control"]:
            producer["coordinator_epoch"] = batch["control"]["coordinator_epoch"]
            producer["transaction_start"] = -1
            continue
        delta = batch["last_offset"] - batch["base_offset"]
        producer["last_sequence"] = (batch["base_sequence"] + delta) % 2**31
        if batch["is_transactional"] and producer["transaction_start"] < 0:
            producer["transaction_start"] = batch["base_offset"]
    forgotten = 1000 * time.time() - DAY
    return [
        producer
        for _, producer in sorted(producers.items())
        if producer["last_timestamp"] > forgotten or producer["transaction_start"] >= 0
    ]


def compare_epochs(directory, topic, batches):
    """The leader epochs that the broker found in the batches."""
    path = directory / "leader-epoch-checkpoint"
    *entries, last = compare.std_host("dump", "--format", "json", path).splitlines()
    expected, epoch = [], -1
    for batch in batches:
        if batch["partition_leader_epoch"] > epoch:
            epoch = batch["partition_leader_epoch"]
            # Where a topic is compacted the first batch may be gone.
            start = topic["start"] if topic["config"] and not expected else batch["base_offset"]
            expected.append((epoch, start))
    entries = [(entry["epoch"], entry["start_offset"]) for entry in map(json.loads, entries)]
    differs(f"{path}: epochs", expected, entries)
    differs(f"{path}: entry_count", json.loads(last)["entry_count"], len(entries))


def compare_segments(work, topic, batches):
    """The broker has left our bytes as they were, and then appended its own."""
    placed = sorted((work / "ours" / f"{topic['topic']}-0").glob("*.log"))
    for log in placed:
        if topic["config"] and log != placed[-1]:
            continue  # compacted
        ours = log.read_bytes()
        theirs = (work / "data" / log.parent.name / log.name).read_bytes()
        differs(f"{log}: bytes", ours == theirs[: len(ours)], True)
        differs(f"{log}: bytes behind them", len(theirs) > len(ours), log == placed[-1])
    differs(f"{topic['topic']}: all CRCs valid", all(b["crc_valid"] for b in batches), True)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    work = Path(sys.argv[2])
    ours, data = work / "ours", work / "data"
    topics = [json.loads(line) for line in (ours / "topics.jsonl").read_text().splitlines()]
    told = map(json.loads, (ours / "told.jsonl").read_text().splitlines())
    told = {line["partition"]: line for line in told}
    written = read_seen(ours / "written.jsonl")
    sources = {topic.get("source") for topic in topics}
    originals = {
        kind: read_seen(work / f"{kind}.jsonl", sources) for kind in ("seen", "committed")
    }
    appended = read_seen(ours / "appended.jsonl")
    seen = {
        (client, kind): read_seen(ours / f"{client}-{kind}.jsonl")
        for client in CLIENTS
        for kind in ("seen", "committed")
    }
    kafka_dump = split_dump((ours / "kafka-dump.txt").read_bytes().decode())
    kafka_errors = (ours / "kafka-dump.err").read_text()
    wrong = re.search(r"^(?!Non-consecutive|  -?\d+ is followed by).+", kafka_errors, re.M)
    differs("DumpLogSegments: errors", "", wrong[0] if wrong else "")
    recovered = re.findall(
        r"Recovering unflushed segment (\d+)\. .* for (ours-\S+)-0\.",
        (work / "broker-recovered.out").read_text(),
    )
    recovered = {f"{topic}-0/{int(base):020}.log" for base, topic in recovered}
    placed = {f"{log.parent.name}/{log.name}" for log in ours.glob("*/*.log")}
    differs("segments that were recovered", sorted(placed), sorted(recovered))

    directories = [data / f"{topic['topic']}-0" for topic in topics]
    partitions = collections.defaultdict(list)
    segments = list(read_dump(*directories))
    for path, batches in segments:
        partitions[path.parent.name] += batches
        compare_batches(path, batches, kafka_dump[str(path)])
    compare_text([path for path, _ in segments], kafka_dump)
    side_files = compare.compare_side_files(directories, kafka_dump)
    compare.std_host("verify", *directories)

    counts = collections.defaultdict(collections.Counter)  # by writer and codec
    for topic in topics:
        partition = f"{topic['topic']}-0"
        batches = partitions[partition]
        row = counts[topic["writer"], topic["codec"]]
        row["topics"] += 1
        source = topic.get("source")
        if source:
            records, committed = (originals[kind][source] for kind in ("seen", "committed"))
        else:
            records = written[partition]
            committed = {o: record for o, record in records.items() if record["committed"]}
        if not records:
            sys.exit(f"{partition}: nothing was written")
        for client in CLIENTS:
            found = seen[client, "seen"][partition]
            compare_seen(client, partition, records, found)
            row[client] += len(found)
            if "-transactions-" in topic["topic"]:
                found = seen[client, "committed"][partition]
                compare_seen(f"{client}, read_committed", partition, committed, found)
                row[f"{client} committed"] += len(found)
        compare_segments(work, topic, batches)

        told_of = told[partition]
        for field in "start", "end", "stable":
            # Of what was recompressed the broker has said so before; here its end is that
            # of the last batch.
            if field in topic:
                differs(f"{partition}: {field}", topic[field], told_of[field])
        end = told_of["end"]
        batches_before = [batch for batch in batches if batch["base_offset"] < end]
        differs(f"{partition}: end", batches_before[-1]["last_offset"] + 1, end)
        producers = sorted(told_of["producers"], key=lambda producer: producer["producer_id"])
        differs(f"{partition}: producers", producers_of(batches_before), producers)
        row["producers"] += len(producers)
        compare_epochs(data / partition, topic, batches)

        (offset, record), = appended[partition].items()
        differs(f"{partition}: offset of the record appended", end, offset)
        value = base64.b64decode(record["value"]).decode()
        differs(f"{partition}: the record appended", topic["topic"], value)
        row["appended"] += 1

    columns = ["topics", *CLIENTS, *(f"{client} committed" for client in CLIENTS)]
    columns += ["producers", "appended"]
    print(f"\n{'written by':11}{'codec':7}", *(f"{column:>{len(column)}}" for column in columns))
    total = sum(counts.values(), collections.Counter())
    for (writer, codec), row in [*sorted(counts.items()), (("total", ""), total)]:
        print(f"{writer:11}{codec:7}", *(f"{row[column]:{len(column)}}" for column in columns))
    print(f"in {len(segments)} segments, {len(recovered)} of them recovered")
    print(f"side files: {side_files}")
    compare.end()


if __name__ == "__main__":
    main()
