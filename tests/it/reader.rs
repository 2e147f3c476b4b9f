//! [`BatchReader`] for itself: entries one at a time, past them, and behind damage.

use std::ops::Range;

use logseg_core::error::ErrorKind;
use logseg_core::{BatchReader, Batches, Builtin, Codec, Cpu, Entry, Event, Limits};
use logseg_core::{Tail, TailKind, Unpacker};
use logseg_tests::build::{Rec, entries};
use logseg_tests::chunks::{Chunking, Random};
use logseg_tests::corpus::files;
use logseg_tests::pack::Packing;
use logseg_tests::read::feed;
use logseg_tests::{BatchBuilder, MessageBuilder};

const LEAST: usize = BatchReader::<Vec<u8>>::LEAST;

/// An input in pieces, and a watch on whoever reads it.
struct Feeder<'a> {
    pieces: std::vec::IntoIter<&'a [u8]>,
    piece: &'a [u8],
    finished: bool,
    polls: u64,
    most: u64,
}

impl<'a> Feeder<'a> {
    fn new(input: &'a [u8], chunking: Chunking) -> Self {
        let pieces = chunking.cut(input).into_iter();
        let most = 100 + 8 * input.len() as u64;
        Self { pieces, piece: &[], finished: false, polls: 0, most }
    }

    /// Gives some more; false if there is no more, as the reader has been told.
    fn feed(&mut self, reader: &mut BatchReader<Vec<u8>>) -> bool {
        if self.piece.is_empty() {
            self.piece = self.pieces.next().unwrap_or_default();
        }
        if self.piece.is_empty() {
            reader.finish();
            return !std::mem::replace(&mut self.finished, true);
        }
        let n = feed(reader, self.piece, self.polls.is_multiple_of(2));
        assert!(n > 0, "asks for input and has no room");
        self.piece = &self.piece[n..];
        true
    }

    /// A poll for every byte, and a few more: whoever needs more than that spins.
    fn poll(&mut self) {
        self.polls += 1;
        assert!(self.polls < self.most, "{} polls", self.polls);
    }
}

#[derive(Debug, PartialEq, Clone)]
enum Seen {
    /// Position, size, and whether its checksum is right.
    Entry(u64, u64, bool),
    Passed(u64, u64),
    Error(&'static str, u64),
    Found(Range<u64>),
    End(Tail),
}

/// What to do about an entry that is larger than the buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Large {
    Grow,
    Pass,
}

fn resync(reader: &mut BatchReader<Vec<u8>>, feeder: &mut Feeder<'_>, seen: &mut Vec<Seen>) {
    loop {
        feeder.poll();
        if let Some(range) = reader.resync() {
            seen.push(Seen::Found(range));
            return;
        }
        if !feeder.feed(reader) {
            assert_eq!(reader.resync(), None, "the input is over");
            return;
        }
    }
}

fn walk(input: &[u8], chunking: Chunking, capacity: usize, large: Large) -> Vec<Seen> {
    let mut reader = BatchReader::new(vec![0xa5; capacity], Cpu::detect());
    let mut feeder = Feeder::new(input, chunking);
    let mut seen = Vec::new();
    loop {
        feeder.poll();
        match reader.poll_entry() {
            Ok(Entry::NeedInput) => assert!(feeder.feed(&mut reader), "asks on at the end"),
            Ok(Entry::Whole(batch)) => {
                let header = *batch.header();
                let at = usize::try_from(header.position).unwrap();
                assert_eq!(batch.bytes(), &input[at..at + batch.bytes().len()]);
                assert_eq!(batch.bytes().len() as u64, header.size);
                let good = batch.check_crc().is_ok();
                assert!(reader.is_whole());
                assert_eq!(reader.position(), header.position);
                assert_eq!(reader.read_to(), header.position + header.size);
                seen.push(Seen::Entry(header.position, header.size, good));
            }
            Ok(Entry::Large(header)) if large == Large::Grow => {
                assert!(!reader.is_whole());
                if reader.is_full() {
                    let size = usize::try_from(header.size).unwrap();
                    let buffer = reader.buffer_mut();
                    let len = size.min(2 * buffer.len());
                    buffer.resize(len, 0xa5);
                } else if !feeder.feed(&mut reader) {
                    panic!("the end comes as the tail");
                }
            }
            Ok(Entry::Large(header)) => {
                let over = loop {
                    feeder.poll();
                    match reader.pass_over() {
                        Ok(true) => break Ok(()),
                        Ok(false) => assert!(feeder.feed(&mut reader), "passes on at the end"),
                        Err(error) => break Err(error),
                    }
                };
                match over {
                    Err(error) => seen.push(Seen::Error(error.name(), error.position())),
                    Ok(()) if reader.read_to() == header.position + header.size => {
                        seen.push(Seen::Passed(header.position, header.size));
                    }
                    Ok(()) => assert!(reader.read_to() == input.len() as u64),
                }
            }
            Ok(Entry::End(tail)) => {
                assert!(matches!(reader.poll_entry(), Ok(Entry::End(same)) if same == tail));
                assert_eq!(reader.resync(), None);
                seen.push(Seen::End(tail));
                return seen;
            }
            Err(error) => {
                seen.push(Seen::Error(error.name(), error.position()));
                resync(&mut reader, &mut feeder, &mut seen);
            }
        }
    }
}

/// What the slice source makes of it; behind an error it knows nothing.
fn by_slice(input: &[u8]) -> Vec<Seen> {
    let mut batches = Batches::new(input, Cpu::detect());
    let mut seen = Vec::new();
    for batch in &mut batches {
        seen.push(match batch {
            Ok(batch) => {
                let header = batch.header();
                Seen::Entry(header.position, header.size, batch.check_crc().is_ok())
            }
            Err(error) => Seen::Error(error.name(), error.position()),
        });
    }
    seen.push(Seen::End(batches.tail().expect("it is over")));
    seen
}

fn chunkings(random: &mut Random, len: usize) -> Vec<Chunking> {
    let mut all = vec![Chunking::Whole, Chunking::Random(random.bits())];
    all.push(Chunking::At(random.below(len + 1)));
    if len < 40_000 {
        all.push(Chunking::Bytes);
    }
    all
}

#[test]
fn entries_of_every_file_in_any_chunking() {
    let mut random = Random(41);
    let mut passed = 0;
    for file in files() {
        let slice = by_slice(&file.bytes);
        let entries = |seen: &Seen| match *seen {
            Seen::Entry(at, size, _) | Seen::Passed(at, size) => Some((at, size)),
            _ => None,
        };
        for chunking in chunkings(&mut random, file.bytes.len()) {
            for capacity in [LEAST, 700, 64 << 10] {
                let what = format!("{}: {chunking:?} {capacity}", file.name);
                let grown = walk(&file.bytes, chunking, capacity, Large::Grow);
                let over = walk(&file.bytes, chunking, capacity, Large::Pass);
                if slice.iter().any(|seen| matches!(seen, Seen::Error(..))) {
                    // Garbage, and maybe what is found in it.
                    let at = slice.len() - 2;
                    assert_eq!(grown[..=at], slice[..=at], "{what}");
                    assert_eq!(over[at], slice[at], "{what}");
                    continue;
                }
                assert_eq!(grown, slice, "{what}");
                assert!(over.iter().filter_map(entries).eq(slice.iter().filter_map(entries)));
                assert_eq!(over.last(), slice.last(), "{what}");
                passed += over.iter().filter(|seen| matches!(seen, Seen::Passed(..))).count();
            }
        }
    }
    assert!(passed > 500, "{passed} were passed over");
}

fn batch(number: i64, len: usize) -> Vec<u8> {
    let value = Random(number.cast_unsigned()).data(len);
    let record = Rec::new(number, 1_700_000_000_000, b"key", &value);
    match number % 4 {
        3 => MessageBuilder::new(1, &record).build(),
        2 => {
            BatchBuilder::new(vec![record]).base_offset(number).packing(Packing::java(Codec::Lz4))
        }
        .build(),
        _ => BatchBuilder::new(vec![record]).base_offset(number).build(),
    }
}

/// A dozen entries of 200 to 3000 bytes, and where they start and end.
fn segment(random: &mut Random) -> (Vec<u8>, Vec<Range<usize>>) {
    let all: Vec<u8> = (1..13).flat_map(|number| batch(number, 200 + random.below(2800))).collect();
    let at = entries(&all);
    assert_eq!(at.len(), 12);
    (all, at)
}

/// The same, whatever the chunking; in a buffer that holds every entry, and in a huge one.
fn walk_all(input: &[u8], random: &mut Random) -> Vec<Seen> {
    let whole = walk(input, Chunking::Whole, 8 << 10, Large::Pass);
    for chunking in chunkings(random, input.len()) {
        assert_eq!(walk(input, chunking, 8 << 10, Large::Pass), whole, "{chunking:?}");
    }
    let huge = walk(input, Chunking::Whole, 1 << 20, Large::Pass);
    for chunking in chunkings(random, input.len()) {
        assert_eq!(walk(input, chunking, 1 << 20, Large::Pass), huge, "{chunking:?}");
    }
    whole
}

fn good(at: &Range<usize>, moved: usize) -> Seen {
    Seen::Entry((at.start + moved) as u64, at.len() as u64, true)
}

fn clean(len: usize) -> Seen {
    let kind = TailKind::Clean;
    Seen::End(Tail { kind, position: len as u64, bytes: 0 })
}

#[test]
fn resync_behind_what_is_inserted() {
    let mut random = Random(42);
    for round in 0..12 {
        let (mut input, at) = segment(&mut random);
        // What no entry starts like: as magic it is 238.
        let n = 1 + random.below(if round % 2 == 0 { 40 } else { 20_000 });
        let before = random.below(12);
        let start = at[before].start;
        input.splice(start..start, vec![0xee; n]);
        let mut want: Vec<Seen> = at[..before].iter().map(|at| good(at, 0)).collect();
        // A short one makes the entry behind it look like one of unknown magic, or size.
        let seen = walk_all(&input, &mut random);
        let Seen::Error(name, _) = seen[before] else { panic!("{seen:?}") };
        want.push(seen[before].clone());
        want.push(Seen::Found(start as u64..(start + n) as u64));
        want.extend(at[before..].iter().map(|at| good(at, n)));
        want.push(clean(input.len()));
        assert_eq!(seen, want, "{n} bytes before entry {before}: {name}");
    }
}

#[test]
fn resync_at_the_end_of_the_segment() {
    let mut random = Random(43);
    for capacity in [LEAST, 300, 8 << 10] {
        let (mut input, at) = segment(&mut random);
        input.extend(vec![0xee; 5000]);
        let end = at[11].end as u64;
        for chunking in chunkings(&mut random, input.len()) {
            let seen = walk(&input, chunking, capacity, Large::Pass);
            let tail = Tail { kind: TailKind::Garbage, position: end, bytes: 5000 };
            let want = [Seen::Error("unknown_magic", end + 16), Seen::End(tail)];
            assert_eq!(seen[12..], want, "{chunking:?} {capacity}");
        }
    }
}

#[test]
fn resync_to_entries_that_are_larger_than_the_buffer() {
    // By their headers alone: v2 only, and such as clients write.
    let mut random = Random(44);
    let all = [batch(1, 100), vec![0xee; 70], batch(4, 3000), batch(5, 100)];
    let input = all.concat();
    let start = all[0].len() as u64;
    for chunking in chunkings(&mut random, input.len()) {
        for capacity in [LEAST, 200, 1000] {
            let seen = walk(&input, chunking, capacity, Large::Pass);
            assert!(seen.contains(&Seen::Found(start..start + 70)), "{chunking:?} {seen:?}");
            let end = input.len() as u64 - all[3].len() as u64;
            assert!(seen.contains(&Seen::Passed(start + 70, end - start - 70)));
            assert_eq!(seen.last(), Some(&clean(input.len())));
        }
    }
}

#[test]
fn damage_of_any_kind_is_seen_the_same_in_any_chunking() {
    let mut random = Random(45);
    let (mut found, mut errors) = (0, 0);
    for _ in 0..60 {
        let (mut input, at) = segment(&mut random);
        for _ in 0..1 + random.below(3) {
            let place = match random.below(3) {
                // In a size, a magic, or anywhere.
                0 => at[random.below(12)].start + 8 + random.below(4),
                1 => at[random.below(12)].start + 16,
                _ => random.below(input.len()),
            }
            .min(input.len() - 1);
            match random.below(3) {
                0 => input[place] = random.byte(),
                1 => {
                    let n = 1 + random.below(300);
                    let noise: Vec<u8> = (0..n).map(|_| random.byte()).collect();
                    input.splice(place..place, noise);
                }
                _ => drop(input.drain(place..(place + 1 + random.below(300)).min(input.len()))),
            }
        }
        let seen = walk_all(&input, &mut random);
        found += seen.iter().filter(|seen| matches!(seen, Seen::Found(_))).count();
        errors += seen.iter().filter(|seen| matches!(seen, Seen::Error(..))).count();
        // Nothing is skipped without a word, and nothing is read twice.
        let mut to = 0;
        for seen in &seen {
            let (from, end) = match *seen {
                Seen::Entry(at, size, _) | Seen::Passed(at, size) => (at, at + size),
                Seen::Found(ref range) => (range.start, range.end),
                Seen::Error(..) => continue,
                Seen::End(tail) => (tail.position, tail.position + tail.bytes),
            };
            assert_eq!(from, to, "{seen:?}");
            to = end;
        }
        assert_eq!(to, input.len() as u64);
    }
    assert!(found > 30 && errors >= found, "{found} found, {errors} errors");
}

#[test]
fn a_wrong_size_is_distrusted() {
    let mut random = Random(46);
    let (mut input, at) = segment(&mut random);
    // It swallows the start of the fourth entry, or leaves its own end behind.
    for size in [at[2].len() + 40, at[2].len() - 70] {
        let field = i32::try_from(size - 12).unwrap();
        input[at[2].start + 8..][..4].copy_from_slice(&field.to_be_bytes());
        let mut reader = BatchReader::new(vec![0; 64 << 10], Cpu::detect());
        assert_eq!(reader.push(&input), input.len());
        reader.finish();
        let mut seen = Vec::new();
        loop {
            let good = match reader.poll_entry().unwrap() {
                Entry::Whole(batch) => batch.check_crc().is_ok(),
                Entry::End(tail) => break assert_eq!(tail.kind, TailKind::Clean),
                other => panic!("{other:?}"),
            };
            let followed = reader.is_followed_up();
            assert_eq!(good, followed, "at {}", reader.position());
            if good {
                seen.push(reader.position());
            } else {
                reader.distrust();
                let want = at[2].start as u64..at[3].start as u64;
                assert_eq!(reader.resync(), Some(want));
            }
        }
        let want = at.iter().enumerate().filter(|(i, _)| *i != 2).map(|(_, at)| at.start as u64);
        assert!(want.eq(seen));
    }
}

#[test]
fn who_follows_up() {
    let entry = batch(1, 100);
    let followed = |behind: &[u8]| {
        let mut reader = BatchReader::new(vec![0; 8 << 10], Cpu::detect());
        assert!(reader.is_followed_up(), "nothing is there to doubt");
        assert_eq!(reader.push(&[&entry, behind].concat()), entry.len() + behind.len());
        assert!(matches!(reader.poll_entry(), Ok(Entry::Whole(_))));
        reader.is_followed_up()
    };
    assert!(followed(b""), "the end");
    assert!(followed(&[0xee; 16]), "too little to say");
    assert!(followed(&[0; 17]), "zeros");
    assert!(followed(&batch(4, 10)));
    assert!(followed(&batch(3, 10)));
    assert!(!followed(&[0xee; 17]));
    assert!(!followed(&batch(4, 10)[1..]));
}

#[test]
fn an_entry_in_passing_is_distrusted_before_it_is_read() {
    // Its size is a lie: it would pass through up to the end of the input.
    let mut lie = batch(4, 500);
    lie[8..12].copy_from_slice(&100_000i32.to_be_bytes());
    let input = [batch(1, 100), lie, batch(5, 50)].concat();
    let at = entries(&input)[0].end as u64;
    for chunking in [Chunking::Whole, Chunking::Bytes, Chunking::Random(3)] {
        let mut window = vec![0; 66 << 10];
        let mut unpacker = Unpacker::new(Builtin::new(), &mut window);
        let mut reader = BatchReader::new(vec![0; 300], Cpu::detect());
        let mut feeder = Feeder::new(&input, chunking);
        let (mut seen, mut ends) = (Vec::new(), 0);
        loop {
            feeder.poll();
            match unpacker.poll(&mut reader).unwrap() {
                Event::NeedInput => assert!(feeder.feed(&mut reader)),
                Event::Batch(header) if header.size == 100_012 => {
                    assert!(!reader.is_whole());
                    unpacker.abandon();
                    reader.distrust();
                    resync(&mut reader, &mut feeder, &mut seen);
                }
                Event::BatchEnd(end) => {
                    assert_eq!(end.verdict, Ok(()));
                    ends += 1;
                }
                Event::End(tail) => break assert_eq!(tail.kind, TailKind::Clean),
                _ => {}
            }
        }
        let behind = input.len() as u64 - batch(5, 50).len() as u64;
        assert_eq!((seen, ends), (vec![Seen::Found(at..behind)], 2), "{chunking:?}");
    }
}

#[test]
fn tails_in_any_chunking() {
    let first = batch(1, 300);
    let second = batch(4, 3000);
    let at = first.len() as u64;
    let zeros = |n: usize| vec![0; n];
    let tail = |kind, bytes: usize| Seen::End(Tail { kind, position: at, bytes: bytes as u64 });
    let mut picture = vec![0xff; 500];
    (picture[8], picture[16]) = (1, 2);
    let mut garbage = zeros(100);
    garbage.push(7);
    let mut cases: Vec<(Vec<u8>, Vec<Seen>)> = vec![
        (zeros(0), vec![tail(TailKind::Clean, 0)]),
        (zeros(1), vec![tail(TailKind::ZeroPadding, 1)]),
        (zeros(16), vec![tail(TailKind::ZeroPadding, 16)]),
        (zeros(17), vec![tail(TailKind::ZeroPadding, 17)]),
        (zeros(20_000), vec![tail(TailKind::ZeroPadding, 20_000)]),
        (garbage, vec![Seen::Error("batch_length", at + 8), tail(TailKind::Garbage, 101)]),
        (
            picture,
            vec![Seen::Error("batch_length_not_a_segment", at + 8), tail(TailKind::Garbage, 500)],
        ),
    ];
    // The start of an offset is zeros.
    cases.push((second[..7].to_vec(), vec![tail(TailKind::ZeroPadding, 7)]));
    for n in [8, 11, 12, 16, 17, 60, 61, 62, 1000, second.len() - 1] {
        cases.push((second[..n].to_vec(), vec![tail(TailKind::PartialBatch, n)]));
    }
    for (behind, want) in &cases {
        let input = [&first[..], behind].concat();
        let mut slice = by_slice(&input);
        assert_eq!(slice.remove(0), Seen::Entry(0, at, true));
        assert_eq!(slice, *want, "{} bytes", behind.len());
        for chunking in [Chunking::Whole, Chunking::Bytes, Chunking::Random(9)] {
            for capacity in [LEAST, 100, 1000, 64 << 10] {
                for large in [Large::Pass, Large::Grow] {
                    let seen = walk(&input, chunking, capacity, large);
                    let what = format!("{} bytes, {chunking:?}, {capacity}", behind.len());
                    assert_eq!(seen[1..], *want, "{what}");
                }
            }
        }
    }
}

#[test]
fn a_buffer_that_is_too_small_says_so_and_ends() {
    let input = batch(1, 100);
    for capacity in [0, 1, 16, 17, 30, 60] {
        let kind = ErrorKind::BufferTooSmall { need: 61, have: capacity as u64 };
        let mut window = vec![0; 66 << 10];
        let mut unpacker = Unpacker::new(Builtin::new(), &mut window);
        for before in [0, capacity] {
            let mut reader = BatchReader::at(vec![0; capacity], 500, Cpu::detect());
            assert_eq!(reader.push(&input[..before]), before);
            unpacker.abandon();
            let error = unpacker.poll(&mut reader).unwrap_err();
            assert_eq!((error.kind(), error.position()), (kind, 500));
            let event = unpacker.poll(&mut reader).unwrap();
            let want = Tail { kind: TailKind::Garbage, position: 500, bytes: before as u64 };
            assert!(matches!(event, Event::End(tail) if tail == want), "{event:?}");

            let mut reader = BatchReader::new(vec![0; capacity], Cpu::detect());
            assert_eq!(reader.push(&input[..before]), before);
            assert_eq!(reader.poll_entry().unwrap_err().kind(), kind);
            assert_eq!(reader.resync(), None);
            assert!(matches!(reader.poll_entry(), Ok(Entry::End(_))));
        }
    }
    assert_eq!(walk(&input, Chunking::Bytes, LEAST, Large::Grow), by_slice(&input));
}

#[test]
fn limits_hold_for_what_passes_through() {
    let large = batch(1, 3000);
    let input = [large.clone(), batch(4, 10)].concat();
    let size = large.len() as u64;
    let mut window = vec![0; 66 << 10];
    let mut unpacker = Unpacker::new(Builtin::new(), &mut window)
        .with_limits(Limits::default().with_batch(size - 1));
    for chunking in [Chunking::Whole, Chunking::Bytes] {
        unpacker.abandon();
        let mut reader = BatchReader::new(vec![0; LEAST], Cpu::detect());
        let reading = logseg_tests::read::stream_with(&input, chunking, &mut reader, &mut unpacker);
        let error = reading.batches[0].end.verdict.unwrap_err();
        let kind = ErrorKind::BatchTooLarge { size, limit: size - 1 };
        assert_eq!((error.kind(), error.position()), (kind, 8));
        assert_eq!(reading.batches[1].end.verdict, Ok(()));
    }
}

#[test]
fn positions_count_from_where_the_input_starts() {
    let input = [batch(1, 100), batch(4, 200), vec![0xee; 20]].concat();
    let mut reader = BatchReader::at(vec![0; 100], 1 << 40, Cpu::detect());
    let mut window = vec![0; 66 << 10];
    let mut unpacker = Unpacker::new(Builtin::new(), &mut window);
    let reading =
        logseg_tests::read::stream_with(&input, Chunking::Bytes, &mut reader, &mut unpacker);
    let second = (1 << 40) + entries(&input)[1].start as u64;
    assert_eq!(reading.batches[1].header.position, second);
    let end = (1 << 40) + input.len() as u64 - 20;
    assert_eq!(reading.errors[0].position(), end + 16);
    assert_eq!(reading.tail, Tail { kind: TailKind::Garbage, position: end, bytes: 20 });
}

/// A batch that nobody wants any more is passed over, however it comes.
#[test]
fn abandoned_batches_are_passed_over() {
    let long = batch(4, 3000);
    let input = [long.clone(), batch(5, 100)].concat();
    for chunking in [Chunking::Bytes, Chunking::Whole, Chunking::Random(7)] {
        for buffer in [LEAST, 300, 10_000] {
            let mut reader = BatchReader::new(vec![0; buffer], Cpu::detect());
            let mut feeder = Feeder::new(&input, chunking);
            let mut window = vec![0; 128 << 10];
            let mut unpacker = Unpacker::new(Builtin::new(), &mut window);
            let (mut started, mut ended) = (Vec::new(), Vec::new());
            let tail = loop {
                feeder.poll();
                match unpacker.poll(&mut reader).unwrap() {
                    Event::NeedInput => drop(feeder.feed(&mut reader)),
                    Event::Batch(header) => {
                        started.push(header.base_offset);
                        if header.base_offset == 4 {
                            unpacker.abandon();
                        }
                    }
                    Event::BatchEnd(end) => ended.push(end.verdict.map(|()| end.records)),
                    Event::End(tail) => break tail,
                    Event::Record(_) | Event::Piece(_) => {}
                }
            };
            assert_eq!((started, ended), (vec![4, 5], vec![Ok(1)]), "{chunking:?} {buffer}");
            assert_eq!(tail.kind, TailKind::Clean);
        }
    }
}
