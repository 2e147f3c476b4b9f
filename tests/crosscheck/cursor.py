#!/usr/bin/env python3
"""Compares `std-host cursor` with independent implementations of the same formats:
protobuf, lz4, zlib, zstandard and python-snappy of PyPI.

    pip install protobuf lz4 zstandard python-snappy
    tests/crosscheck/cursor.py --program target/release/std-host

Random cursors and ledgers go both ways: nodes that std-host writes are read by these
libraries, nodes that they write are read by std-host.
"""
import argparse
import json
import random
import struct
import subprocess
import zlib

import lz4.block
import snappy
import zstandard
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Field number, name, type, label; as in MLDataFormats.proto.
MESSAGES = {
    'Metadata': '1 compressionType int32 required, 2 uncompressedSize int32 required',
    'NestedPositionInfo': '1 ledgerId int64 required, 2 entryId int64 required',
    'MessageRange': '1 lowerEndpoint NestedPositionInfo required, '
                    '2 upperEndpoint NestedPositionInfo required',
    'LongProperty': '1 name string required, 2 value int64 required',
    'StringProperty': '1 name string required, 2 value string required',
    'KeyValue': '1 key string required, 2 value string required',
    'Batched': '1 position NestedPositionInfo required, 2 deleteSet int64 repeated',
    'ManagedCursorInfo':
        '1 cursorsLedgerId int64 required, 2 markDeleteLedgerId int64 optional, '
        '3 markDeleteEntryId int64 optional, '
        '4 individualDeletedMessages MessageRange repeated, '
        '5 properties LongProperty repeated, 6 lastActive int64 optional, '
        '7 batchedEntryDeletionIndexInfo Batched repeated, '
        '8 cursorProperties StringProperty repeated',
    'LedgerInfo': '1 ledgerId int64 required, 2 entries int64 optional, '
                  '3 size int64 optional, 4 timestamp int64 optional',
    'ManagedLedgerInfo': '1 ledgerInfo LedgerInfo repeated, '
                         '2 terminatedPosition NestedPositionInfo optional, '
                         '3 properties KeyValue repeated',
}
CODECS = ['NONE', 'LZ4', 'ZLIB', 'ZSTD', 'SNAPPY']


def classes():
    file = descriptor_pb2.FileDescriptorProto(name='ml.proto', package='ml', syntax='proto2')
    kind, labels = descriptor_pb2.FieldDescriptorProto, {}
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, of, label in map(str.split, fields.split(', ')):
            new = message.field.add(name=field, number=int(number),
                                    label=getattr(kind, 'LABEL_' + label.upper()))
            if of in MESSAGES:
                new.type, new.type_name = kind.TYPE_MESSAGE, '.ml.' + of
            else:
                new.type = getattr(kind, 'TYPE_' + of.upper())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName('ml.' + name))
            for name in MESSAGES}


def flushed(plain):
    deflate = zlib.compressobj()
    return deflate.compress(plain) + deflate.flush(zlib.Z_SYNC_FLUSH)


PACK = {
    'NONE': lambda plain: plain,
    'LZ4': lambda plain: lz4.block.compress(plain, store_size=False),
    'ZLIB': flushed,
    'ZSTD': lambda plain: zstandard.ZstdCompressor(3, write_checksum=True).compress(plain),
    'SNAPPY': snappy.compress,
}
UNPACK = {
    'NONE': lambda data, size: data,
    'LZ4': lambda data, size: lz4.block.decompress(data, uncompressed_size=size),
    'ZLIB': lambda data, size: zlib.decompressobj().decompress(data),
    'ZSTD': lambda data, size: zstandard.ZstdDecompressor().decompress(data),
    'SNAPPY': lambda data, size: snappy.uncompress(data),
}


def random_cursor(make, size):
    at, ledger = random.randrange(1000), random.randrange(1 << 40)
    cursor = make['ManagedCursorInfo'](cursorsLedgerId=random.choice([-1, ledger]))
    if random.random() < .8:
        cursor.markDeleteLedgerId, cursor.markDeleteEntryId = ledger, at
    for _ in range(random.randrange(size)):
        ends = cursor.individualDeletedMessages.add()
        for end in (ends.lowerEndpoint, ends.upperEndpoint):
            at += random.randint(1, 300)
            end.ledgerId, end.entryId = ledger, at
    for n in range(random.randrange(3)):
        cursor.properties.add(name=f'p{n}', value=random.getrandbits(62) - (1 << 61))
        cursor.cursorProperties.add(name=f'é{n}', value='v' * random.randrange(50))
        batch = cursor.batchedEntryDeletionIndexInfo.add()
        batch.position.ledgerId, batch.position.entryId = ledger, at + n
        batch.deleteSet.extend(random.getrandbits(62) for _ in range(random.randrange(9)))
    return cursor


def random_ledger(make, size):
    info = make['ManagedLedgerInfo']()
    for n in range(random.randrange(size) + 1):
        info.ledgerInfo.add(ledgerId=n * 7, entries=random.randrange(50000),
                            size=random.randrange(1 << 40), timestamp=1700000000000 + n)
    if random.random() < .5:
        info.terminatedPosition.ledgerId, info.terminatedPosition.entryId = 3, 4
    info.properties.add(key='k', value='ü')
    return info


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--program', required=True)
    parser.add_argument('--rounds', type=int, default=30)
    args = parser.parse_args()
    random.seed(146)
    make, read, written = classes(), 0, 0

    def std_host(data, action, *options):
        done = subprocess.run([args.program, 'cursor', action, *options], input=data,
                              stdout=subprocess.PIPE, check=True)
        return done.stdout

    for number in range(args.rounds):
        for kind, info in (('cursor', random_cursor(make, 20 << number % 10)),
                           ('ledger', random_ledger(make, 3 << number % 10))):
            plain, of_kind = info.SerializeToString(), ('--kind', kind)
            for index, codec in enumerate(CODECS):
                meta = make['Metadata'](compressionType=index, uncompressedSize=len(plain))
                meta = meta.SerializeToString()
                node = struct.pack('>HI', 0x4778, len(meta)) + meta + PACK[codec](plain)
                assert std_host(node, 'decompress', *of_kind) == plain, (number, kind, codec)
                seen = json.loads(std_host(node, 'inspect', *of_kind))
                assert seen['compression_type'] == codec
                if kind == 'cursor':
                    assert seen['cursor']['individualDeletedMessages_count'] == len(
                        info.individualDeletedMessages)
                    assert seen['cursor']['properties'] == {
                        p.name: p.value for p in info.properties}
                else:
                    assert seen['ledger']['size'] == sum(o.size for o in info.ledgerInfo)
                read += 1
                if codec == 'NONE':
                    continue
                node = std_host(plain, 'compress', '--codec', codec.lower(), *of_kind)
                magic, size = struct.unpack('>HI', node[:6])
                meta = make['Metadata'].FromString(node[6:6 + size])
                assert (magic, meta.compressionType) == (0x4778, index)
                assert meta.uncompressedSize == len(plain)
                found = UNPACK[codec](node[6 + size:], len(plain))
                assert type(info).FromString(found) == info, (number, kind, codec)
                written += 1
    print(f'{read} nodes of other libraries read, {written} nodes read by them')


if __name__ == '__main__':
    main()
