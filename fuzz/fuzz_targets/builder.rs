//! Any bytes as what is done with a builder. What it takes comes back, from the slice and
//! from a stream; what it refuses leaves no trace; and with a buffer of `capacity_for` it
//! refuses nothing for want of room.
#![no_main]

use std::cell::RefCell;
use std::ops::Range;

use libfuzzer_sys::fuzz_target;
use logseg_core::batch::{ControlType, Header};
use logseg_core::builder::{
    Buffer, BuilderOptions, LentBuffer, MemoryRecordsBuilder, Policy, ProducerState, RecordsInfo,
    Timestamps, sizes,
};
use logseg_core::codec::{BuiltinCompressors, Compressors, lz4_encode, xerial_encode, zstd};
use logseg_core::error::{Error, ErrorKind};
use logseg_core::{BatchReader, Builtin, Codec, Cpu, Magic, Unpacker};
use logseg_tests::build::{MessageBuilder, Rec};
use logseg_tests::read::{Reading, assert_same, read_with, stream_with};
use logseg_tests::{Chunking, chunks::Random};
use std_host::compressors::HostCompressors;
use std_host::growing::GrowingBuffer;

/// Most bytes of records before compression.
const MOST: u64 = 600 << 10;
const BEFORE: u8 = 0x5a;

/// Not cleared in between: what one input leaves there must not matter to the next.
#[derive(Default)]
struct Kit {
    lz4: Box<lz4_encode::Memory>,
    snappy: Box<xerial_encode::Memory>,
    host: HostCompressors,
    memory: Vec<u8>,
    window: Vec<u8>,
    input: Vec<u8>,
    workspace: Vec<u8>,
}

thread_local! {
    static KIT: RefCell<Kit> = RefCell::new(Kit {
        memory: vec![0; 8 << 20],
        window: vec![0; 2 << 20],
        input: vec![0; 64 << 10],
        workspace: vec![0; zstd::workspace_len(8 << 20)],
        ..Kit::default()
    });
}

/// The bytes that say what is done; zeros behind their end.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let n = N.min(self.0.len());
        array[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        array
    }

    fn below(&mut self, end: u32) -> u32 {
        u32::from(self.byte()) % end
    }

    /// Small, near, or anything.
    fn number(&mut self) -> i64 {
        match self.byte() {
            0..=63 => i64::from(self.byte().cast_signed()),
            64..=191 => 1_700_000_000_000 + i64::from(i16::from_le_bytes(self.array())),
            192..=223 => i32::from_le_bytes(self.array()).into(),
            _ => i64::from_le_bytes(self.array()),
        }
    }

    /// Null, bytes of the script, a run, noise, or words.
    fn field(&mut self) -> Option<Vec<u8>> {
        let kind = self.below(6);
        let len = match kind {
            0 => return None,
            1 => usize::from(self.byte()),
            _ => 3 * usize::from(u16::from_le_bytes(self.array())) >> self.below(16),
        };
        Some(match kind {
            1 => {
                let n = len.min(self.0.len());
                let (part, rest) = self.0.split_at(n);
                self.0 = rest;
                part.to_vec()
            }
            2 => vec![self.byte(); len],
            3 => Random(u64::from(self.byte()) + 1).data(len),
            _ => b"offset batch record ".iter().copied().cycle().take(len).collect(),
        })
    }

    fn headers(&mut self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let n = self.byte();
        let n = if n < 200 { 0 } else { n - 199 };
        (0..n).map(|_| (self.field().unwrap_or_default(), self.field())).collect()
    }

    fn record(&mut self, offset: i64) -> Rec {
        let (timestamp, key, value) = (self.number(), self.field(), self.field());
        Rec { offset, timestamp, key, value, headers: self.headers() }
    }

    fn producer(&mut self) -> ProducerState {
        if self.below(2) == 0 {
            return ProducerState::NONE;
        }
        ProducerState {
            producer_id: self.number(),
            producer_epoch: i16::from_le_bytes(self.array()),
            base_sequence: i32::from_le_bytes(self.array()),
        }
    }

    /// What a builder is to be told, and a model of it without records.
    fn model(&mut self) -> Model {
        let magic = [Magic::V0, Magic::V1, Magic::V2, Magic::V2][self.below(4) as usize];
        let codec = Codec::ALL[self.below(5) as usize];
        let flags = self.byte();
        // Flags that the version does not have are refused; one time in 16 is enough.
        let any = self.below(16) == 0;
        let v2 = magic == Magic::V2 || any;
        let stamp = (flags & 1 != 0).then(|| self.number());
        let base = if flags & 2 != 0 { self.number() } else { 0 };
        let legacy = flags & 4 != 0 && (magic != Magic::V2 || any);
        let policy = if legacy { Policy::Legacy } else { Policy::Current };
        let transactional = flags & 8 != 0 && v2;
        let control = flags & 0x30 == 0x30 && v2;
        let producer = if flags & 0x10 != 0 && v2 { self.producer() } else { ProducerState::NONE };
        let horizon = (flags & 0x40 != 0 && v2).then(|| self.number());
        let ratio = if flags & 0x80 != 0 { f32::from(self.byte()) / 100.0 } else { 1.0 };
        let mut options = BuilderOptions::new(magic, codec)
            .with_base_offset(base)
            .with_policy(policy)
            .with_transactional(transactional)
            .with_control(control)
            .with_producer(producer)
            .with_partition_leader_epoch(flags.into())
            .with_estimated_compression_ratio(ratio);
        if let Some(stamp) = stamp {
            options = options.with_timestamps(Timestamps::LogAppendTime(stamp));
        }
        if let Some(horizon) = horizon {
            options = options.with_delete_horizon(horizon);
        }
        let refused = magic != Magic::V2
            && (transactional || control || horizon.is_some() || codec == Codec::Zstd)
            || magic == Magic::V2 && legacy;
        Model {
            options,
            refused,
            magic,
            codec,
            base,
            stamp,
            policy,
            control,
            marks: transactional && producer.producer_id != -1,
            open: true,
            lost: false,
            last: None,
            recs: Vec::new(),
            taken: Vec::new(),
            plain: 0,
            max: (-1, -1),
        }
    }
}

/// What was taken, to be done once more.
enum Taken {
    Record(Rec),
    Control(i64, ControlType, Vec<u8>),
    Message(i64, Vec<u8>),
    LastOffset(i64),
}

fn borrowed(rec: &Rec) -> Vec<Header<'_>> {
    rec.headers.iter().map(|(key, value)| Header { key, value: value.as_deref() }).collect()
}

fn append(builder: &mut Builder<'_, impl Buffer>, rec: &Rec) -> Result<Option<u32>, Error> {
    let (key, value) = (rec.key.as_deref(), rec.value.as_deref());
    builder.append_with_offset(rec.offset, rec.timestamp, key, value, &borrowed(rec))
}

fn has_room_for(builder: &Builder<'_, impl Buffer>, rec: &Rec) -> bool {
    let (key, value) = (rec.key.as_deref(), rec.value.as_deref());
    builder.has_room_for(rec.timestamp, key, value, &borrowed(rec))
}

fn size_bound(magic: Magic, rec: &Rec) -> u64 {
    let (key, value) = (rec.key.as_deref(), rec.value.as_deref());
    sizes::record_size_upper_bound(magic, key, value, &borrowed(rec))
}

type Builder<'c, B> = MemoryRecordsBuilder<'c, B>;

/// What the builder should hold.
struct Model {
    options: BuilderOptions,
    /// By the constructor.
    refused: bool,
    magic: Magic,
    codec: Codec,
    base: i64,
    stamp: Option<i64>,
    policy: Policy,
    control: bool,
    /// Takes the ends of transactions.
    marks: bool,
    open: bool,
    /// It holds something that readers may refuse.
    lost: bool,
    last: Option<i64>,
    /// As readers tell them, but for the offsets of a v1 wrapper.
    recs: Vec<Rec>,
    taken: Vec<Taken>,
    plain: u64,
    max: (i64, i64),
}

impl Model {
    fn next(&self) -> i64 {
        self.last.map_or(self.base, |last| last.wrapping_add(1))
    }

    /// Whether nothing but room may be missing.
    fn takes(&self, rec: &Rec, control: bool) -> bool {
        self.open
            && control == self.control
            && rec.timestamp >= -1
            && self.takes_offset(rec.offset)
            && (self.magic == Magic::V2 || rec.headers.is_empty())
    }

    fn takes_offset(&self, offset: i64) -> bool {
        self.last.is_none_or(|last| offset > last) && self.in_reach(offset)
    }

    fn in_reach(&self, offset: i64) -> bool {
        offset.checked_sub(self.base).is_some_and(|delta| i32::try_from(delta).is_ok())
    }

    /// `written` is the timestamp in the record.
    fn take(&mut self, mut rec: Rec, written: i64, size: u64, taken: Taken) {
        self.last = Some(rec.offset);
        self.plain += size;
        if self.magic != Magic::V0 && written > self.max.0 {
            self.max = (written, rec.offset);
        }
        rec.timestamp = match (self.magic, self.stamp) {
            (Magic::V0, _) => -1,
            // Not compressed, each says for itself.
            (Magic::V1, _) if self.codec == Codec::None => written,
            (_, Some(stamp)) => stamp,
            (_, None) => written,
        };
        self.recs.push(rec);
        self.taken.push(taken);
    }

    fn info(&self) -> RecordsInfo {
        let one = self.magic == Magic::V2 || self.codec != Codec::None;
        let last = self.last.unwrap_or(-1);
        let (max_timestamp, offset_of_max_timestamp) = match self.stamp {
            Some(stamp) if self.magic != Magic::V0 => (stamp, if one { last } else { self.base }),
            _ if self.max.0 == -1 => (-1, -1),
            _ => (self.max.0, if one { last } else { self.max.1 }),
        };
        RecordsInfo { max_timestamp, offset_of_max_timestamp }
    }

    /// The records as they are read: those of a v1 wrapper count back from its offset.
    /// `None` if that is before them, which readers refuse.
    fn read(&self) -> Option<Vec<Rec>> {
        let mut recs = self.recs.clone();
        if self.magic == Magic::V1 && self.codec != Codec::None {
            let (wrapper, first) = match self.policy {
                Policy::Current => (self.last.unwrap_or_default(), self.base),
                Policy::Legacy => (recs.len() as i64 - 1, 0),
            };
            let inner = |rec: &Rec| rec.offset.wrapping_sub(first);
            let last = recs.last().map_or(0, inner);
            let shift = match wrapper {
                // Not assigned.
                0 => 0,
                _ if wrapper < last => return None,
                _ => wrapper.wrapping_sub(last),
            };
            for rec in &mut recs {
                rec.offset = inner(rec).wrapping_add(shift);
            }
        }
        Some(recs)
    }
}

fn state(builder: &Builder<'_, impl Buffer>) -> (u32, u64, u64, RecordsInfo, Option<i64>, bool) {
    (
        builder.record_count(),
        builder.uncompressed_bytes_written(),
        builder.size_in_bytes(),
        builder.info(),
        builder.last_offset(),
        builder.is_full(),
    )
}

fn is_small(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::BufferTooSmall { need, have } => {
            assert!(need > have);
            true
        }
        _ => false,
    }
}

/// Takes what there was room for; nothing of what was refused.
fn outcome<T>(
    builder: &Builder<'_, impl Buffer>,
    before: (u32, u64, u64, RecordsInfo, Option<i64>, bool),
    result: Result<T, Error>,
    takes: bool,
) -> Option<T> {
    match result {
        Ok(value) => {
            assert!(takes, "it should have been refused");
            Some(value)
        }
        Err(error) => {
            assert_eq!(state(builder), before, "an error leaves it as it was");
            assert!(is_small(&error) == takes, "{error}");
            None
        }
    }
}

/// Does what the script says, until it is closed or there is no more. With `roomy` only
/// what there should be room for, and then there is.
fn run(
    script: &mut Script<'_>,
    builder: &mut Builder<'_, impl Buffer>,
    model: &mut Model,
    roomy: Option<Rec>,
) {
    let magic = model.magic;
    let is_roomy = roomy.is_some();
    let mut first = roomy;
    while !script.0.is_empty() && model.plain < MOST {
        let op = if is_roomy { 0 } else { script.below(20) };
        let before = state(builder);
        match op {
            0..=5 => {
                let own = op == 5;
                let offset = if own { script.number() } else { model.next() };
                let asked = first.is_none();
                let mut rec = first.take().unwrap_or_else(|| script.record(offset));
                rec.offset = offset;
                if is_roomy {
                    valid(magic, &mut rec);
                }
                let room = has_room_for(builder, &rec);
                if model.policy == Policy::Current {
                    assert!(!(room && builder.is_full()));
                    let first = builder.record_count() == 0;
                    assert!(!first || room == model.open, "the first always");
                }
                if is_roomy && asked && !room {
                    continue;
                }
                let (takes, stays) = (model.takes(&rec, false), is_roomy);
                let result = append(builder, &rec);
                if stays && takes {
                    assert!(result.is_ok(), "room was promised: {result:?}");
                }
                if let Some(crc) = outcome(builder, before, result, takes) {
                    assert_eq!(crc.is_none(), magic == Magic::V2);
                    let size = builder.uncompressed_bytes_written() - before.1;
                    assert!(size <= size_bound(magic, &rec));
                    let written = match (magic, model.stamp) {
                        (Magic::V1, Some(stamp)) => stamp,
                        _ => rec.timestamp,
                    };
                    model.take(rec.clone(), written, size, Taken::Record(rec));
                }
            }
            6..=8 => {
                // A message as it stands, of the version or of another, whole or not.
                let rec = Rec { headers: Vec::new(), ..script.record(model.next()) };
                let number = if script.below(8) == 0 { script.byte() } else { magic.number() };
                let bits = if script.below(8) == 0 { script.byte() } else { 0 };
                let mut entry = MessageBuilder::new(number, &rec).attributes(bits).build();
                let damaged = script.below(8) == 0;
                if damaged {
                    let at = usize::from(script.byte()).min(entry.len() - 1);
                    entry[at] ^= 1 << script.below(8);
                    if script.below(2) == 0 {
                        entry.truncate(at);
                    }
                }
                let offset = if script.below(8) == 0 { script.number() } else { rec.offset };
                let result = builder.append_message_with_offset(offset, &entry);
                // What is damaged may be as good as before, which the builder knows best.
                let good = number == magic.number() && magic != Magic::V2 && bits & 7 == 0;
                if damaged || bits & !8 != 0 {
                    if result.is_ok() {
                        model.lost = true;
                        return;
                    }
                    assert_eq!(state(builder), before);
                    continue;
                }
                let takes = model.open && good && model.takes_offset(offset);
                if outcome(builder, before, result, takes).is_some() {
                    let size = entry.len() as u64;
                    let written = if magic == Magic::V0 { -1 } else { rec.timestamp };
                    let taken = Taken::Message(offset, entry);
                    model.take(Rec { offset, ..rec }, written, size, taken);
                }
            }
            9 => {
                let (timestamp, value) = (script.number(), script.field().unwrap_or_default());
                let kind = ControlType::from_id(i16::from_le_bytes(script.array()) % 9);
                control(builder, model, timestamp, kind, value, |builder, value| {
                    builder.append_control(timestamp, kind, value)
                });
            }
            10 => {
                let (timestamp, epoch) = (script.number(), i32::from_le_bytes(script.array()));
                let kind = ControlType::from_id(i16::from(script.byte() % 3));
                let [a, b, c, d] = epoch.to_be_bytes();
                let value = vec![0, 0, a, b, c, d];
                let marker = matches!(kind, ControlType::Abort | ControlType::Commit);
                if !marker || !model.marks {
                    let result = builder.append_end_txn_marker(timestamp, kind, epoch);
                    outcome(builder, before, result, false);
                } else {
                    control(builder, model, timestamp, kind, value, |builder, _| {
                        builder.append_end_txn_marker(timestamp, kind, epoch)
                    });
                }
            }
            11 => builder.set_estimated_compression_ratio(f32::from(script.byte()) / 64.0),
            12 => {
                let (producer, transactional) = (script.producer(), script.below(2) == 0);
                if builder.set_producer_state(producer, transactional).is_ok() {
                    model.marks = transactional && producer.producer_id != -1;
                }
            }
            13 => {
                // As compaction does it: not below what there is.
                let last = model.next().saturating_add(script.below(100).into());
                if builder.override_last_offset(last).is_ok() {
                    assert!(model.in_reach(last));
                    model.last = Some(last);
                    model.taken.push(Taken::LastOffset(last));
                } else {
                    assert!(!model.in_reach(last) || builder.is_closed());
                }
            }
            14 if script.below(4) == 0 => {
                builder.close_for_record_appends().expect("it closes");
                model.open = false;
            }
            15 if script.below(4) == 0 => {
                if builder.close().is_ok() {
                    model.open = false;
                }
            }
            16 => {
                let producer = script.producer();
                builder.reopen_and_rewrite_producer_state(producer, false).expect("not aborted");
                model.marks = false;
            }
            17 if script.below(32) == 0 => {
                builder.abort();
                model.open = false;
                return;
            }
            _ => {
                assert_eq!(builder.info(), model.info());
                assert_eq!(builder.record_count() as usize, model.recs.len());
                assert_eq!(builder.last_offset(), model.last);
            }
        }
    }
}

fn control<B: Buffer>(
    builder: &mut Builder<'_, B>,
    model: &mut Model,
    timestamp: i64,
    kind: ControlType,
    value: Vec<u8>,
    append: impl FnOnce(&mut Builder<'_, B>, &[u8]) -> Result<(), Error>,
) {
    let before = state(builder);
    let [high, low] = kind.id().to_be_bytes();
    let rec = Rec::new(model.next(), timestamp, &[0, 0, high, low], &value);
    let takes = model.takes(&rec, true);
    let result = append(builder, &value);
    if outcome(builder, before, result, takes).is_some() {
        let size = builder.uncompressed_bytes_written() - before.1;
        model.take(rec, timestamp, size, Taken::Control(timestamp, kind, value));
    }
}

/// Makes it one that is refused for nothing.
fn valid(magic: Magic, rec: &mut Rec) {
    rec.timestamp = rec.timestamp.max(-1);
    if magic != Magic::V2 {
        rec.headers.clear();
    }
}

fn reading(built: &[u8], stream: Option<(Chunking, usize, usize)>, kit: &mut Kit) -> Reading {
    let codecs = Builtin::new().with_zstd(&mut kit.workspace);
    let (_, buffer, room) = stream.unwrap_or((Chunking::Whole, 0, kit.window.len()));
    let mut unpacker = Unpacker::new(codecs, &mut kit.window[..room]);
    let Some((chunking, ..)) = stream else { return read_with(built, &mut unpacker) };
    let mut reader = BatchReader::new(&mut kit.input[..buffer], Cpu::detect());
    stream_with(built, chunking, &mut reader, &mut unpacker)
}

/// Does again what was taken, in a buffer that grows.
fn again(model: &Model, options: BuilderOptions, compressors: &mut dyn Compressors) -> Vec<u8> {
    let buffer = GrowingBuffer::default();
    let mut builder =
        MemoryRecordsBuilder::new(buffer, options, compressors, Cpu::scalar()).expect("as before");
    for taken in &model.taken {
        match taken {
            Taken::Record(rec) => {
                append(&mut builder, rec).expect("as before");
            }
            Taken::Control(timestamp, kind, value) => {
                builder.append_control(*timestamp, *kind, value).expect("as before");
            }
            Taken::Message(offset, entry) => {
                builder.append_message_with_offset(*offset, entry).expect("as before");
            }
            Taken::LastOffset(offset) => builder.override_last_offset(*offset).expect("as before"),
        }
    }
    builder.close().expect("as before");
    builder.into_buffer().into_vec()
}

/// What was built is what was taken.
fn check(built: &[u8], model: &Model, chunking: Chunking, how: u8, kit: &mut Kit) {
    let whole = reading(built, None, kit);
    assert!(whole.errors.is_empty());
    if let Some(recs) = model.read() {
        for batch in &whole.batches {
            match batch.end.verdict.map_err(|error| error.kind()) {
                // The builder takes any value for a control record.
                Err(ErrorKind::MalformedControl(_)) if model.control => return,
                verdict => assert_eq!(verdict, Ok(()), "{:?}", batch.header),
            }
        }
        let read: Vec<Rec> = whole.records().cloned().collect();
        assert!(read == recs, "they come back");
    } else {
        assert!(whole.batches.iter().all(|batch| batch.end.verdict.is_err()));
    }
    let buffer = [61, 62 + usize::from(how), 1 << 10, 64 << 10][usize::from(how >> 2 & 3)];
    let window = [66 << 10, 130 << 10, kit.window.len()][usize::from((how >> 4) % 3)];
    let stream = reading(built, Some((chunking, buffer, window)), kit);
    assert_same(&whole, &stream, "stream and slice");
}

fuzz_target!(|data: &[u8]| {
    let mut script = Script(data);
    let mut model = script.model();
    let start = usize::from(script.byte() % 20);
    let how = script.byte();
    let limit = usize::from(u16::from_le_bytes(script.array())) * 4 >> script.below(16);
    let chunking = match script.byte() {
        0 => Chunking::Bytes,
        1 => Chunking::Whole,
        seed => Chunking::Random(seed.into()),
    };
    KIT.with_borrow_mut(|kit| {
        let mut memory = std::mem::take(&mut kit.memory);
        let mut capacity = limit;
        let mut roomy = None;
        let mut options = model.options;
        if how & 3 == 0 && !model.control {
            let mut rec = script.record(model.next());
            valid(model.magic, &mut rec);
            options = options.with_write_limit(limit);
            let most = options.capacity_for(limit, size_bound(model.magic, &rec));
            if most < 4 << 20 {
                capacity = most as usize;
                roomy = Some(rec);
            }
        } else if how & 3 != 1 {
            options = options.with_write_limit(script.byte().into());
        }
        model.options = options;
        let room = &mut memory[..start + capacity];
        room[..start].fill(BEFORE);
        let built = build(&mut script, &mut model, room, start, roomy, kit);
        if let Some((range, options)) = built {
            assert!(memory[..start].iter().all(|&byte| byte == BEFORE));
            let built = &memory[range];
            check(built, &model, chunking, how, kit);
            let Kit { host, .. } = kit;
            assert!(again(&model, options, host) == built, "what was refused left a trace");
        }
        kit.memory = memory;
    });
});

/// Builds it; where it is, and by what options in the end. `None` if nothing came of it.
fn build(
    script: &mut Script<'_>,
    model: &mut Model,
    room: &mut [u8],
    start: usize,
    roomy: Option<Rec>,
    kit: &mut Kit,
) -> Option<(Range<usize>, BuilderOptions)> {
    let have = room.len() - start;
    let mut buffer = LentBuffer::new(room);
    buffer.commit(start);
    let mut core;
    // Core's own snappy and lz4 now, the host's when it is done again: they are the same.
    let compressors: &mut dyn Compressors = match model.codec {
        Codec::Gzip | Codec::Zstd => &mut kit.host,
        _ => {
            core = BuiltinCompressors::new().with_lz4(&mut kit.lz4).with_snappy(&mut kit.snappy);
            &mut core
        }
    };
    let builder = MemoryRecordsBuilder::new(&mut buffer, model.options, compressors, Cpu::detect());
    let mut builder = match builder {
        Ok(builder) => {
            assert!(!model.refused);
            builder
        }
        Err(error) => {
            assert!(model.refused || is_small(&error) && have < 61, "{error}");
            assert_eq!(buffer.len(), start);
            return None;
        }
    };
    run(script, &mut builder, model, roomy);
    if model.lost {
        let _ = builder.close();
        return None;
    }
    if builder.close().is_err() {
        // Aborted, or a producer that cannot be, which can be mended.
        let producer = match model.magic {
            Magic::V2 => ProducerState { producer_id: 1, producer_epoch: 2, base_sequence: 3 },
            _ => ProducerState::NONE,
        };
        builder.set_producer_state(producer, false).expect("it is not built");
        if builder.close().is_err() {
            assert_eq!(builder.into_buffer().len(), start, "an aborted batch is gone");
            return None;
        }
    }
    assert_eq!(builder.info(), model.info());
    assert_eq!(builder.record_count() as usize, model.recs.len());
    let header = sizes::batch_header_size(model.magic, model.codec);
    assert_eq!(builder.uncompressed_bytes_written(), header + model.plain);
    let size = builder.size_in_bytes();
    let ratio = builder.compression_ratio();
    let options = *builder.options();
    let built = builder.build().expect("it is closed");
    let end = start + built.len();
    match model.policy {
        Policy::Current => {
            assert_eq!(size, built.len() as u64);
            if !model.recs.is_empty() && header > 0 {
                let packed = built.len() as u64 - header;
                assert_eq!(ratio, packed as f32 / model.plain as f32);
            }
        }
        Policy::Legacy => assert_eq!(size, end as u64),
    }
    if model.recs.is_empty() {
        assert!(built.is_empty());
        return None;
    }
    assert_eq!(builder.into_buffer().len(), end);
    Some((start..end, options))
}
