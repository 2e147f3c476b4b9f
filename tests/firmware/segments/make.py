#!/usr/bin/env python3
"""Makes the segments here, out of those in tests/corpus/segments. Run it in this
directory, with PyPI's `zstandard` 0.25.0 and `lz4` 4.4.5.

zstd-windows.log: Kafka's default level declares a window of 2 MiB, more memory than a
small device has. These are the first zstd batches of levels.log (FAA bird strikes),
compressed again with windows of 1, 2, 4, 8 and 16 KiB, as a stream of unknown size,
every second one with a checksum of its content.

large-plain.log: records larger than the device's input buffer, not compressed. The
first batches of webhooks-lz4.log (examples of GitHub webhooks) decompressed, and each
of their records again as a message of magic 0 or 1.
"""

import struct
import zlib

import lz4.frame
import zstandard

SEGMENTS = "../../corpus/segments/"
WINDOW_LOGS = (10, 11, 12, 13, 14)
PLAIN = 3


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def batches(name, codec):
    with open(SEGMENTS + name, "rb") as file:
        segment = file.read()
    at = 0
    while at < len(segment):
        size = 12 + struct.unpack_from(">i", segment, at + 8)[0]
        batch = segment[at : at + size]
        if batch[22] & 7 == codec:
            yield batch
        at += size


def with_records(batch, codec, records):
    rest = batch[21:22] + bytes([batch[22] & ~7 | codec]) + batch[23:61] + records
    length = struct.pack(">i", 9 + len(rest))
    return batch[:8] + length + batch[12:17] + struct.pack(">I", crc32c(rest)) + rest


def zstd(records, window_log):
    parameters = zstandard.ZstdCompressionParameters(
        compression_level=9,
        window_log=window_log,
        write_content_size=False,
        write_checksum=window_log % 2 == 0,
    )
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return stream.compress(records) + stream.flush()


class Fields:
    def __init__(self, data):
        self.data, self.at = data, 0

    def varint(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value >> 1 ^ -(value & 1)

    def sized(self):
        length = self.varint()
        if length < 0:
            return None
        self.at += length
        return self.data[self.at - length : self.at]


def old_field(data):
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def messages(batch, records):
    base_offset, base_timestamp = struct.unpack_from(">q19xq", batch)
    fields = Fields(records)
    while fields.at < len(records):
        fields.varint()
        fields.at += 1
        timestamp = base_timestamp + fields.varint()
        offset = base_offset + fields.varint()
        body = old_field(fields.sized()) + old_field(fields.sized())
        for _ in range(fields.varint()):
            fields.sized(), fields.sized()
        magic = offset % 2
        body = bytes([magic, 0]) + (struct.pack(">q", timestamp) if magic else b"") + body
        yield struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def main():
    with open("zstd-windows.log", "wb") as file:
        for window_log, batch in zip(WINDOW_LOGS, batches("levels.log", 4)):
            records = zstandard.ZstdDecompressor().decompressobj().decompress(batch[61:])
            file.write(with_records(batch, 4, zstd(records, window_log)))
    with open("large-plain.log", "wb") as file:
        for _, batch in zip(range(PLAIN), batches("webhooks-lz4.log", 3)):
            records = lz4.frame.decompress(batch[61:])
            file.write(with_records(batch, 0, records))
            file.writelines(messages(batch, records))


main()
