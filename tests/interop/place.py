#!/usr/bin/env python3
"""place.py topics WORK
place.py segments STD_HOST WORK

Segments of std-host in place of those of a broker. `topics` adds to WORK/ours/topics.jsonl
those that std-host recompresses, from segments that the broker wrote; `segments` does so, in
WORK/ours, and puts all segments there into the log directory WORK/data. WORK/empty has what
the broker made of these topics when they were created; of that only the topic's id stays. The
broker, which is down, is made to forget that it has stopped as it should, so that it recovers
its logs.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

CODECS = "none", "gzip", "snappy", "lz4", "zstd"
# Of the last, the level is not the default.
TARGETS = "none", "gzip", "snappy", "lz4", "zstd", "zstd:9"


def sources():
    """(partition, codec): what to recompress, and with what."""
    for number, codec in enumerate(CODECS):
        for client in "java", "librdkafka", "kafka-python":
            for other in CODECS:
                if other != codec:
                    yield f"{client}-transactions-{codec}-0", other
        # Records larger than the blocks of all codecs.
        following = TARGETS[number + 1]
        yield f"java-odd-{number}", following
        yield f"java-append-time-{number}", following
        yield "java-compacted-30-0", codec


def recompressed():
    """(topic, source, codec with its level), of those whose source there is."""
    for source, codec in sources():
        name, _, number = source.rpartition("-")
        yield f"ours-recompressed-{name}.{number}-{codec.replace(':', '.')}", source, codec


def topics(work):
    with open(work / "ours/topics.jsonl", "a", encoding="utf-8") as lines:
        for topic, source, codec in recompressed():
            if (work / "data" / source).exists():
                line = {
                    "topic": topic,
                    "config": {},
                    "codec": codec.split(":")[0],
                    "writer": "recompress",
                    "source": source,
                }
                print(json.dumps(line), file=lines)


def segments(std_host, work):
    for topic, source, codec in recompressed():
        if not (work / "data" / source).exists():
            continue
        directory = work / "ours" / f"{topic}-0"
        directory.mkdir()
        for log in sorted((work / "data" / source).glob("*.log")):
            output = directory / log.name
            command = [std_host, "recompress", log, "--codec", codec, "--output", output]
            run = subprocess.run(command, capture_output=True)
            if run.returncode:
                sys.exit(f"{' '.join(map(str, command))}: {run.stderr.decode()}")
    for directory in (work / "ours").glob("ours-*"):
        place = work / "data" / directory.name
        place.mkdir()
        shutil.copy(work / "empty" / directory.name / "partition.metadata", place)
        for log in directory.glob("*.log"):
            shutil.copy(log, place)
    (work / "data/.kafka_cleanshutdown").unlink()


def main():
    if sys.argv[1:2] == ["topics"] and len(sys.argv) == 3:
        topics(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["segments"] and len(sys.argv) == 4:
        segments(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
