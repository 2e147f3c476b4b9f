#!/usr/bin/env python3
"""compare.py STD_HOST WORK

Compares what std-host says of the log directory WORK/data with what Kafka said of it: the
lines of Consume in WORK/seen.jsonl and WORK/committed.jsonl, the output of DumpLogSegments
in WORK/kafka-dump.txt, and the numbers of records sent in WORK/topics.jsonl.
"""

import collections
import json
import re
import subprocess
import sys
from pathlib import Path

METADATA = "__cluster_metadata-0"  # no consumer can read it
SAME = "java-same-"
FIELDS = {  # DumpLogSegments' name: that of std-host's JSON
    "baseOffset": "base_offset",
    "lastOffset": "last_offset",
    "count": "record_count",
    "baseSequence": "base_sequence",
    "producerId": "producer_id",
    "producerEpoch": "producer_epoch",
    "partitionLeaderEpoch": "partition_leader_epoch",
    "isTransactional": "is_transactional",
    "isControl": "is_control",
    "deleteHorizonMs": "delete_horizon_ms",
    "position": "position",
    "size": "size",
    "magic": "magic",
    "compresscodec": "codec",
    "crc": "crc",
    "isvalid": "crc_valid",
}
# Only std-host tells that an index has a tail of zeros.
ZERO_TAIL = re.compile(r"Found \d+ preallocated bytes at the end of \S+index")
differences = []


def differs(place, ours, kafkas):
    if ours != kafkas:
        differences.append(f"{place}: std-host {str(ours)[:200]}, Kafka {str(kafkas)[:200]}")


def std_host(*arguments):
    run = subprocess.run([sys.argv[1], *arguments], capture_output=True)
    if run.returncode:
        sys.stderr.write(run.stderr.decode())
        sys.exit(f"std-host {' '.join(map(str, arguments))}: exit code {run.returncode}")
    return run.stdout.decode()


def kafka_value(text):
    """`OptionalLong.empty` is None, a number a number; the rest as it is."""
    text = re.sub(r"OptionalLong(\.empty|\[(.*)\])", r"\2", text)
    words = {"": None, "true": True, "false": False}
    return int(text) if re.fullmatch(r"-?\d+", text) else words.get(text, text)


def place_of(batches, offset):
    """Where among the batches of a partition an offset is, or should be."""
    batch = [b for b in batches if b["base_offset"] <= offset][-1]
    return f"{batch['path']}: byte {batch['position']}: offset {offset}"


def compare_batches(path, batches, lines):
    """The batches of a segment with the batch lines of DumpLogSegments."""
    theirs = [line for line in lines if line.startswith("baseOffset: ")]
    differs(f"{path}: batches", len(batches), len(theirs))
    for ours, line in zip(batches, theirs):
        fields = {k: kafka_value(v) for k, v in re.findall(r"(\w+): (\S*)", line)}
        place = f"{path}: byte {ours['position']}"
        for kafka_name, name in FIELDS.items():
            differs(f"{place}: {name}", ours[name], fields[kafka_name])
        max_timestamp = fields.get(ours["timestamp_type"])
        differs(f"{place}: max_timestamp", ours["max_timestamp"], max_timestamp)
        differs(f"{place}: header_record_count", ours["header_record_count"], fields["count"])
    markers = re.compile(r"\| offset: .*endTxnMarker: (\w+) coordinatorEpoch: (\d+)")
    theirs = [m.groups() for m in map(markers.fullmatch, lines) if m]
    ours = [batch for batch in batches if batch["is_control"] and batch["producer_id"] >= 0]
    differs(f"{path}: markers", len(ours), len(theirs))
    for batch, (kind, epoch) in zip(ours, theirs):
        place = f"{path}: byte {batch['position']}: control"
        expected = {"type": kind, "type_id": int(kind == "COMMIT"), "coordinator_epoch": int(epoch)}
        differs(place, batch["control"], expected)


def compare_records(path, batches, seen):
    """The records of a segment with those the consumer saw; removes them from `seen`."""
    for batch in batches:
        for record in [] if batch["is_control"] else batch["records"]:
            place = f"{path}: byte {batch['position']}: offset {record['offset']}"
            kafkas = seen.pop(record["offset"], None)
            if kafkas is None:
                differs(place, "has it", "has not seen it")
                continue
            for field in "timestamp", "key", "value", "headers":
                differs(f"{place}: {field}", record[field], kafkas[field])


def compare_committed(batches, committed):
    """What read_committed gave: no aborted records, nothing behind an open transaction."""
    expected, open_transactions = set(), {}
    for batch in batches:
        offsets = [record["offset"] for record in batch["records"]]
        producer = batch["producer_id"]
        if batch["is_control"]:
            ended = open_transactions.pop(producer, [])
            if batch["control"]["type"] == "COMMIT":
                expected.update(ended)
        elif batch["is_transactional"]:
            open_transactions.setdefault(producer, []).extend(offsets)
        else:
            expected.update(offsets)
    stable = min((offsets[0] for offsets in open_transactions.values()), default=float("inf"))
    for offset in sorted({o for o in expected if o < stable} ^ committed.keys())[:3]:
        place = f"{place_of(batches, offset)}: read_committed"
        differs(place, offset in expected and offset < stable, offset in committed)


def compare_text(paths, kafka_dump):
    """The text of `dump` with that of DumpLogSegments."""
    for start in range(0, len(paths), 100):
        some = paths[start : start + 100]
        ours = split_dump(std_host("dump", "--deep-iteration", "--print-data-log", *some))
        for path in map(str, some):
            lines = [line for line in ours[path] if not ZERO_TAIL.fullmatch(line)]
            theirs = kafka_dump[path]
            differs(f"{path}: lines", len(lines), len(theirs))
            for number, pair in enumerate(zip(lines, theirs), 1):
                if pair[0] != pair[1]:
                    differs(f"{path}: dump's line {number}", *pair)
                    break


def compare_side_files(directories, kafka_dump):
    kinds = "*index", "*.snapshot"
    paths = sorted(p for directory in directories for kind in kinds for p in directory.rglob(kind))
    compare_text(paths, kafka_dump)
    return f"{len(paths)} compared, {sum(len(kafka_dump[str(p)]) - 1 for p in paths)} entries"


def compare_sizes(data, partitions):
    """`analyze` of the uncompressed batches with the sizes of those Kafka's producer made."""
    plain = partitions.get(f"{SAME}none-0", [])
    codecs = {
        partition[len(SAME) : -2].replace(".", ":"): batches
        for partition, batches in partitions.items()
        if partition.startswith(SAME)
    }
    del codecs["none"]
    report = std_host(
        "analyze", "--format", "json", "--codecs", ",".join(codecs), data / f"{SAME}none-0"
    )
    print(f"\nanalyze of {len(plain)} uncompressed batches against those of the Java producer:")
    for row, (codec, batches) in zip(json.loads(report)["total"]["codecs"], codecs.items()):
        for ours, theirs in zip(plain, batches, strict=True):
            if (ours["base_offset"], ours["last_offset"]) != (
                theirs["base_offset"],
                theirs["last_offset"],
            ) or theirs["codec"] != codec.split(":")[0]:
                sys.exit(f"the producer with {codec} did not make the same batches as with none")
        size, kafka_size = row["compressed_bytes"], sum(batch["size"] for batch in batches)
        print(f"{codec:12}{size:10}{kafka_size:10}{100 * (size / kafka_size - 1):+9.3f} %")
        if abs(size - kafka_size) > kafka_size / 100:
            differs(f"{SAME}none: {codec}: compressed_bytes", size, kafka_size)


def read_dump(*arguments):
    """(path, batches with their records) of every segment."""
    lines = std_host("dump", "--format", "json", *arguments)
    batches = []
    for line in map(json.loads, lines.splitlines()):
        if line["type"] == "batch":
            batches.append(line | {"records": []})
        elif line["type"] == "record":
            batches[-1]["records"].append(line)
        else:
            for batch in batches:
                batch["path"] = line["path"]
            yield Path(line["path"]), batches
            batches = []


def split_dump(text):
    """The lines of a dump by file."""
    dumps = {}
    # A payload may have line ends of every kind in it.
    for part in text.split("Dumping ")[1:]:
        path, *lines = part.split("\n")
        dumps[path] = lines
    return dumps


def read_seen(path, partitions=None):
    """Records by partition and offset; of all partitions, or of some."""
    seen = collections.defaultdict(dict)
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            # The partition is what a line begins with.
            if partitions is None or line.split('"', 4)[3] in partitions:
                record = json.loads(line)
                seen[record["partition"]][record["offset"]] = record
    return seen


def end():
    """Tells the differences, if there are any, and ends the program."""
    if differences:
        print(f"\n{len(differences)} differences", *differences[:50], sep="\n")
        sys.exit(1)
    print("\nall equal")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    work = Path(sys.argv[2])
    data = work / "data"
    kafka_dump = split_dump((work / "kafka-dump.txt").read_bytes().decode())
    seen, committed = read_seen(work / "seen.jsonl"), read_seen(work / "committed.jsonl")
    sent = [json.loads(line) for line in (work / "topics.jsonl").read_text().splitlines()]

    counts = collections.defaultdict(collections.Counter)  # by client and codec
    kinds = collections.Counter()
    partitions = collections.defaultdict(list)
    segments = list(read_dump("--deep-iteration", "--print-data-log", data))
    differs("segments", sorted(str(p) for p, _ in segments), sorted(map(str, data.rglob("*.log"))))
    for path, batches in segments:
        partition = path.parent.name
        partitions[partition] += batches
        compare_batches(path, batches, kafka_dump[str(path)])
        if partition != METADATA:
            compare_records(path, batches, seen[partition])
        client = re.match("java|librdkafka|kafka-python|", partition)[0] or "broker"
        for batch in batches:
            row = counts[client, "control" if batch["is_control"] else batch["codec"]]
            row["batches"] += 1
            row["records"] += len(batch["records"])
            row["bytes"] += batch["size"]
            kinds["aborts"] += batch["is_control"] and batch["control"]["type"] == "ABORT"
            kinds["transactional"] += batch["is_transactional"]
            kinds["idempotent"] += batch["producer_id"] >= 0
            kinds["without producer id"] += batch["producer_id"] < 0
            kinds["empty"] += not batch["records"]
            kinds["with a delete horizon"] += batch["delete_horizon_ms"] is not None
            kinds["of LogAppendTime"] += batch["timestamp_type"] == "LogAppendTime"
    for partition, records in seen.items():
        for offset in list(records)[:3]:
            differs(place_of(partitions[partition], offset), "has it not", "has seen it")
    for partition, batches in partitions.items():
        if partition != METADATA:
            compare_committed(batches, committed[partition])
    for topic in sent:
        records = sum(
            len(batch["records"])
            for partition, batches in partitions.items()
            if partition.rpartition("-")[0] == topic["topic"]
            for batch in batches
            if not batch["is_control"]
        )
        if "-compacted-" not in topic["topic"]:
            differs(f"{topic['topic']}: records", records, topic["sent"])
        elif records > 0.9 * topic["sent"]:
            sys.exit(f"{topic['topic']}: not compacted, {records} of {topic['sent']} records")

    compare_text([path for path, _ in segments], kafka_dump)
    side_files = compare_side_files([data], kafka_dump)
    std_host("verify", data)

    print(f"{'client':14}{'codec':10}{'batches':>9}{'records':>9}{'bytes':>11}")
    for (client, codec), row in sorted(counts.items()):
        print(f"{client:14}{codec:10}{row['batches']:9}{row['records']:9}{row['bytes']:11}")
    total = sum(counts.values(), collections.Counter())
    print(f"{'total':24}{total['batches']:9}{total['records']:9}{total['bytes']:11}")
    kinds_text = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    print(f"in {len(segments)} segments; batches: {kinds_text}")
    print(f"side files: {side_files}")
    compare_sizes(data, partitions)
    if not all(kinds.values()):
        sys.exit("a kind of batch is missing")
    end()


if __name__ == "__main__":
    main()
