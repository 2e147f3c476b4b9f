//! `write-segments DIRECTORY`: partitions of a broker that the builder has written, with
//! every codec.
//!
//! ```text
//! DIRECTORY/TOPIC-0/00000000000000001000.log   a segment
//! DIRECTORY/topics.jsonl                       {"topic","config","codec","writer","start","end","stable"}
//! DIRECTORY/written.jsonl                      a record a line, in the words of `Consume`
//! ```
//! `end` is the offset behind the last record, `stable` the last stable one. Of a topic that
//! is compacted the records are those that must stay. Every run writes the same bytes.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use logseg_core::builder::{ProducerState, Timestamps};
use logseg_core::codec::{lz4_encode, xerial_encode};
use logseg_core::{
    BuilderOptions, BuiltinCompressors, Codec, Compressors, ControlType, Cpu, Header, Magic,
    MemoryRecordsBuilder,
};
use serde_json::{Value, json};
use std_host::compressors::HostCompressors;
use std_host::growing::GrowingBuffer;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Codecs, and levels behind a colon. Of snappy and of lz4 without a level it is the core's
/// own encoders that write, else libraries of the host.
const CODECS: [&str; 14] = [
    "none", "gzip", "gzip:1", "gzip:9", "snappy", "lz4", "lz4:9", "lz4:1", "lz4:17", "zstd",
    "zstd:-5", "zstd:1", "zstd:12", "zstd:19",
];
/// 2096: producers that were not heard of for a day are forgotten.
const START: i64 = 4_000_000_000_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn noise(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }

    /// Compresses as text does.
    fn text(&mut self, len: usize) -> Vec<u8> {
        let mut text = String::new();
        while text.len() < len {
            text += &format!("{{\"order\":{},\"word\":{}}} ", self.below(1 << 20), self.below(400));
        }
        text.truncate(len);
        text.into_bytes()
    }

    fn key(&mut self, of: u64) -> Vec<u8> {
        format!("key-{}", self.below(of)).into_bytes()
    }
}

/// What goes into a record.
#[derive(Clone, Default)]
struct Row {
    /// Offsets that are left out before it.
    gap: i64,
    timestamp: i64,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(&'static str, Option<Vec<u8>>)>,
}

/// A record that was written.
struct Written {
    offset: i64,
    key: Option<Vec<u8>>,
    line: Value,
    committed: bool,
}

/// What is written to a partition.
struct Partition<'a> {
    directory: &'a Path,
    topic: String,
    codec: Codec,
    config: Value,
    compressors: &'a mut dyn Compressors,
    start: i64,
    /// Offset of the next record.
    end: i64,
    leader_epoch: i32,
    segment: Option<File>,
    records: Vec<Written>,
}

impl Partition<'_> {
    /// Begins a segment at the next offset.
    fn roll(&mut self) -> Result<()> {
        let directory = self.directory.join(format!("{}-0", self.topic));
        fs::create_dir_all(&directory)?;
        self.segment = Some(File::create_new(directory.join(format!("{:020}.log", self.end)))?);
        Ok(())
    }

    fn options(&self) -> BuilderOptions {
        BuilderOptions::new(Magic::V2, self.codec)
            .with_base_offset(self.end)
            .with_partition_leader_epoch(self.leader_epoch)
    }

    fn append(&mut self, built: GrowingBuffer) -> Result<()> {
        self.segment.as_mut().ok_or("no segment")?.write_all(&built.into_vec())?;
        Ok(())
    }

    /// Writes a batch, which ends `empty_end` offsets behind its last record.
    fn batch(&mut self, options: BuilderOptions, rows: &[Row], empty_end: i64) -> Result<()> {
        let append_time = match options.timestamp_type() {
            Some(logseg_core::TimestampType::LogAppendTime) => Some(START + self.end),
            _ => None,
        };
        let options = match append_time {
            Some(time) => options.with_timestamps(Timestamps::LogAppendTime(time)),
            None => options,
        };
        let buffer = GrowingBuffer::with_capacity(16 << 10);
        let mut builder =
            MemoryRecordsBuilder::new(buffer, options, self.compressors, Cpu::detect())?;
        for row in rows {
            let offset = self.end + row.gap;
            let headers: Vec<_> = row
                .headers
                .iter()
                .map(|(key, value)| Header { key: key.as_bytes(), value: value.as_deref() })
                .collect();
            let (key, value) = (row.key.as_deref(), row.value.as_deref());
            builder.append_with_offset(offset, row.timestamp, key, value, &headers)?;
            self.end = offset + 1;
            let headers: Vec<_> = row
                .headers
                .iter()
                .map(|(key, value)| (key, value.as_deref().map(std_host::dump::digest::hex)))
                .collect();
            let line = json!({
                "partition": format!("{}-0", self.topic),
                "offset": offset,
                "timestamp": append_time.unwrap_or(row.timestamp),
                "timestamp_type": append_time.map_or("CreateTime", |_| "LogAppendTime"),
                "leader_epoch": self.leader_epoch,
                "key": key.map(|key| STANDARD.encode(key)),
                "value": value.map(|value| STANDARD.encode(value)),
                "headers": headers,
            });
            let key = row.key.clone();
            self.records.push(Written { offset, key, line, committed: true });
        }
        if empty_end > 0 {
            self.end += empty_end;
            builder.override_last_offset(self.end - 1)?;
        }
        builder.close()?;
        let built = builder.into_buffer();
        self.append(built)
    }

    /// Ends a transaction; its records are those of `offsets`.
    fn end_transaction(
        &mut self,
        producer: ProducerState,
        kind: ControlType,
        offsets: &[i64],
    ) -> Result<()> {
        let options = BuilderOptions::new(Magic::V2, Codec::None)
            .with_base_offset(self.end)
            .with_partition_leader_epoch(self.leader_epoch)
            .with_producer(ProducerState { base_sequence: -1, ..producer })
            .with_transactional(true)
            .with_control(true);
        let buffer = GrowingBuffer::with_capacity(78);
        let mut builder =
            MemoryRecordsBuilder::new(buffer, options, self.compressors, Cpu::detect())?;
        builder.append_end_txn_marker(START + self.end, kind, 5)?;
        builder.close()?;
        let built = builder.into_buffer();
        self.append(built)?;
        self.end += 1;
        for record in self.records.iter_mut().filter(|record| offsets.contains(&record.offset)) {
            record.committed = kind == ControlType::Commit;
        }
        Ok(())
    }

    /// Batches of everything that a record can be, in two segments.
    fn batches(&mut self, random: &mut Random, largest: usize) -> Result<()> {
        let header = |random: &mut Random| {
            vec![
                ("a", Some(random.noise(3))),
                ("", Some(Vec::new())),
                ("null", None),
                ("a", Some(random.noise(300))),
                ("\u{fc}\u{6f22}\u{1f600}", Some(b"x".to_vec())),
            ]
        };
        self.roll()?;
        let empty = Row { timestamp: START, ..Row::default() };
        let odd = [
            empty.clone(),
            Row { key: Some(Vec::new()), value: Some(Vec::new()), timestamp: 0, ..empty.clone() },
            Row { headers: header(random), value: Some(random.text(10)), ..empty.clone() },
            Row { key: Some(random.key(9)), timestamp: START - 86_400_000, ..empty.clone() },
            Row {
                key: Some(random.noise(300)),
                value: Some(random.noise(20_000)),
                ..empty.clone()
            },
        ];
        self.batch(self.options(), &odd[..1], 0)?;
        self.batch(self.options(), &odd, 0)?;
        self.batch(self.options(), &[Row { timestamp: -1, ..odd[4].clone() }], 0)?;
        // Lengths where varints and blocks of the codecs end.
        for len in [63, 64, 8191, 8192, 32_767, 32_768, 32_769, 65_535, 65_536, 65_537, 131_073] {
            let value = if len % 2 == 0 { random.noise(len) } else { random.text(len) };
            let row = Row { key: Some(random.key(9)), value: Some(value), ..empty.clone() };
            self.batch(self.options(), &[row], 0)?;
        }
        let value = [random.text(largest / 2), random.noise(largest / 2)].concat();
        let key = Some(random.text(100_000));
        let large = Row { key, value: Some(value), headers: header(random), ..empty.clone() };
        self.batch(self.options(), &[odd[1].clone(), large, odd[2].clone()], 0)?;

        // Of a producer whose sequence wraps, with gaps as compaction leaves them, and of
        // two leaders.
        let mut sequence = i32::MAX - 100;
        for batch in 0..40 {
            if batch == 20 {
                self.roll()?;
                self.leader_epoch += 1;
            }
            let mut rows = Vec::new();
            for i in 0..[1, 2, 10, 60][batch % 4] {
                let len = 5 + random.below(400) as usize;
                rows.push(Row {
                    gap: if batch % 5 == 3 { random.below(3) as i64 } else { 0 },
                    timestamp: START + 1000 * batch as i64 + random.below(50) as i64,
                    key: (i % 4 > 0).then(|| random.key(100)),
                    value: (i % 7 < 6).then(|| random.text(len)),
                    headers: if i % 13 == 5 { header(random) } else { Vec::new() },
                });
            }
            let mut options = self.options();
            if batch % 4 == 1 {
                options = options.with_timestamps(Timestamps::LogAppendTime(0));
            }
            let empty_end = if batch % 10 == 3 { 2 } else { 0 };
            if batch % 3 > 0 {
                options = options.with_producer(ProducerState {
                    producer_id: 9000,
                    producer_epoch: 2,
                    base_sequence: sequence,
                });
                let offsets = rows.iter().map(|row| row.gap + 1).sum::<i64>() + empty_end;
                sequence = ((i64::from(sequence) + offsets) % (1 << 31)) as i32;
            }
            self.batch(options, &rows, empty_end)?;
        }
        Ok(())
    }

    /// Two producers, every other of whose transactions is aborted; one stays open. Gives
    /// the offset at which that begins.
    fn transactions(&mut self, random: &mut Random) -> Result<i64> {
        self.roll()?;
        let mut open = [const { Vec::new() }; 2];
        let mut sequences = [0, 0];
        let producer = |of: usize, base_sequence| ProducerState {
            producer_id: 7001 + of as i64,
            producer_epoch: 3 * of as i16,
            base_sequence,
        };
        for round in 0..24 {
            for of in 0..2 {
                let options = self
                    .options()
                    .with_producer(producer(of, sequences[of]))
                    .with_transactional(true);
                let rows: Vec<_> = (0..10)
                    .map(|i| Row {
                        timestamp: START + 100 * round + i,
                        key: Some(random.key(50)),
                        value: Some(random.text(100)),
                        ..Row::default()
                    })
                    .collect();
                let first = self.end;
                self.batch(options, &rows, 0)?;
                sequences[of] += 10;
                open[of].extend(first..self.end);
                // The second one's transactions take four rounds.
                if of == 0 || round % 4 == 3 {
                    let commit = [round % 2 == 0, round % 8 == 3][of];
                    let kind = if commit { ControlType::Commit } else { ControlType::Abort };
                    let offsets = std::mem::take(&mut open[of]);
                    self.end_transaction(producer(of, -1), kind, &offsets)?;
                }
            }
        }
        let stable = self.end;
        let options = self.options().with_producer(producer(1, sequences[1]));
        let row = Row { timestamp: START, value: Some(random.text(100)), ..Row::default() };
        self.batch(options.with_transactional(true), &[row], 0)?;
        if let Some(open) = self.records.last_mut() {
            open.committed = false;
        }
        // Of nobody's transaction, but behind the last stable offset.
        let row = Row { timestamp: START + 1, value: Some(random.text(100)), ..Row::default() };
        self.batch(self.options(), &[row], 0)?;
        if let Some(behind) = self.records.last_mut() {
            behind.committed = false;
        }
        Ok(stable)
    }

    /// The same few keys again and again, with tombstones; the second segment is the active
    /// one, which no cleaner touches.
    fn compacted(&mut self, random: &mut Random) -> Result<()> {
        let mut sequence = 0;
        for segment in 0..2 {
            self.roll()?;
            for batch in 0..[30, 3][segment] {
                let rows: Vec<_> = (0..12)
                    .map(|i| Row {
                        timestamp: START + 1000 * batch + i,
                        key: Some(random.key(90)),
                        value: (i % 5 > 0).then(|| random.text(150)),
                        headers: vec![("i", Some(random.noise(5)))],
                        ..Row::default()
                    })
                    .collect();
                let options = self.options().with_producer(ProducerState {
                    producer_id: 9000,
                    producer_epoch: 0,
                    base_sequence: sequence,
                });
                self.batch(options, &rows, 0)?;
                sequence += 12;
            }
            if segment == 0 {
                let mut keys = std::collections::HashSet::new();
                self.records.reverse();
                self.records.retain(|record| keys.insert(record.key.clone()));
                self.records.reverse();
            }
        }
        Ok(())
    }

    /// Tells what was written.
    fn tell(&self, stable: i64, topics: &mut impl Write, written: &mut impl Write) -> Result<()> {
        let Self { topic, codec, config, start, end, .. } = self;
        let line = json!({
            "topic": topic,
            "config": config,
            "codec": codec.name(),
            "writer": "builder",
            "start": start,
            "end": end,
            "stable": stable,
        });
        writeln!(topics, "{line}")?;
        for record in &self.records {
            let mut line = record.line.clone();
            line["committed"] = record.committed.into();
            writeln!(written, "{line}")?;
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let Some(directory) = std::env::args_os().nth(1) else {
        return Err("usage: write-segments DIRECTORY".into());
    };
    let directory = Path::new(&directory);
    fs::create_dir_all(directory)?;
    let mut topics = BufWriter::new(File::create_new(directory.join("topics.jsonl"))?);
    let mut written = BufWriter::new(File::create_new(directory.join("written.jsonl"))?);
    for (seed, spec) in (0..).zip(CODECS) {
        let name = spec.split(':').next().unwrap_or(spec);
        let codec = Codec::ALL.into_iter().find(|codec| codec.name() == name).ok_or(spec)?;
        let mut snappy = Box::new(xerial_encode::Memory::new());
        let mut lz4 = Box::new(lz4_encode::Memory::new());
        let mut core = BuiltinCompressors::new().with_snappy(&mut snappy).with_lz4(&mut lz4);
        let mut host = HostCompressors::new();
        let of_core = matches!(spec, "none" | "snappy" | "lz4");
        if !of_core {
            host = host.with_level(spec.parse()?);
        }
        for kind in ["batches", "transactions", "compacted"] {
            let start = if kind == "batches" { 1000 } else { 0 };
            let mut partition = Partition {
                directory,
                topic: format!("ours-{kind}-{}", spec.replace(':', ".")),
                codec,
                config: json!({}),
                compressors: if of_core { &mut core } else { &mut host },
                start,
                end: start,
                leader_epoch: 0,
                segment: None,
                records: Vec::new(),
            };
            let random = &mut Random(seed);
            let stable = match kind {
                "batches" => {
                    // A segment of a megabyte for each level would take its time.
                    let largest = if spec.contains(':') { 200_000 } else { 1_500_000 };
                    partition.batches(random, largest)?;
                    None
                }
                "transactions" => Some(partition.transactions(random)?),
                _ => {
                    partition.config =
                        json!({"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"});
                    partition.compacted(random)?;
                    None
                }
            };
            partition.tell(stable.unwrap_or(partition.end), &mut topics, &mut written)?;
        }
    }
    topics.flush()?;
    written.flush()?;
    Ok(())
}
