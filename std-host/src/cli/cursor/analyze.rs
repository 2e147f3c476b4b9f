//! `cursor analyze`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{COMPRESSED, Format, Halt, MessageArgs, Opened, ratio, read, tell};
use crate::cli::{Outcome, Stop};
use crate::cursor_info::{CompressionType, Envelope, Error, Magic, Node};

/// A time is the least of this many runs, unless they take longer than [`ENOUGH`].
const RUNS: u32 = 9;
const ENOUGH: Duration = Duration::from_millis(200);

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    nodes: Vec<Figures>,
    total: Figures,
}

/// Of one node, or all.
#[derive(Serialize)]
struct Figures {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    stored_bytes: u64,
    plain_bytes: u64,
    /// Most bytes of a node in the store.
    limit: u64,
    codecs: Vec<CodecFigures>,
}

#[derive(Serialize)]
struct CodecFigures {
    compression_type: &'static str,
    compressed_bytes: u64,
    ratio: f64,
    /// Nodes of this type that the store takes.
    fitting: u64,
    compress_ns: u64,
    decompress_ns: u64,
}

pub(super) fn run(
    files: &[PathBuf],
    message: &MessageArgs,
    format: Format,
    limit: u64,
    out: &mut impl Write,
    outcome: &mut Outcome,
) -> Result<(), Stop> {
    let mut nodes = Vec::new();
    for file in files {
        match measure(file, message, limit) {
            Ok(figures) => nodes.push(figures),
            Err(halt) => tell(file, Err(halt), outcome)?,
        }
    }
    let total = Figures::total(&nodes, limit);
    match format {
        Format::Json => {
            let report = Report { schema: "std-host/cursor-analyze/1", nodes, total };
            serde_json::to_writer(&mut *out, &report).map_err(io::Error::from)?;
            writeln!(out)?;
        }
        Format::Text => {
            let all = nodes.iter().chain((nodes.len() > 1).then_some(&total));
            for (index, figures) in all.enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                figures.write_text(nodes.len() as u64, out)?;
            }
        }
    }
    Ok(())
}

fn measure(file: &Path, message: &MessageArgs, limit: u64) -> Result<Figures, Halt> {
    let bytes = read(file, message.limit())?;
    let plain = Opened::new(&bytes, message)?.message;
    let codecs = COMPRESSED
        .into_iter()
        .map(|compression| CodecFigures::measure(compression, &plain, limit))
        .collect::<Result<_, Error>>()?;
    Ok(Figures {
        path: Some(file.display().to_string()),
        stored_bytes: bytes.len() as u64,
        plain_bytes: plain.len() as u64,
        limit,
        codecs,
    })
}

/// Runs something a few times; its result and its least time.
fn least<T>(run: impl Fn() -> Result<T, Error>) -> Result<(T, u64), Error> {
    let begin = Instant::now();
    let mut best = u128::MAX;
    let mut runs = 0;
    loop {
        let start = Instant::now();
        let result = run()?;
        best = best.min(start.elapsed().as_nanos());
        runs += 1;
        if runs == RUNS || begin.elapsed() > ENOUGH {
            return Ok((result, u64::try_from(best).unwrap_or(u64::MAX)));
        }
    }
}

impl CodecFigures {
    fn measure(compression: CompressionType, plain: &[u8], limit: u64) -> Result<Self, Error> {
        let (node, compress_ns) = least(|| Envelope::emit(Magic::Info, compression, plain))?;
        let (_, decompress_ns) = least(|| Node::parse(&node)?.message(plain.len()).map(drop))?;
        let size = node.len() as u64;
        Ok(Self {
            compression_type: compression.name(),
            compressed_bytes: size,
            ratio: ratio(plain.len() as u64, size),
            fitting: u64::from(size <= limit),
            compress_ns,
            decompress_ns,
        })
    }
}

impl Figures {
    fn total(nodes: &[Self], limit: u64) -> Self {
        let sum = |of: fn(&Self) -> u64| nodes.iter().map(of).sum::<u64>();
        let plain_bytes = sum(|node| node.plain_bytes);
        let codecs = COMPRESSED.into_iter().enumerate().map(|(index, compression)| {
            let sum = |of: fn(&CodecFigures) -> u64| {
                nodes.iter().map(|node| of(&node.codecs[index])).sum::<u64>()
            };
            let compressed_bytes = sum(|codec| codec.compressed_bytes);
            CodecFigures {
                compression_type: compression.name(),
                compressed_bytes,
                ratio: ratio(plain_bytes, compressed_bytes),
                fitting: sum(|codec| codec.fitting),
                compress_ns: sum(|codec| codec.compress_ns),
                decompress_ns: sum(|codec| codec.decompress_ns),
            }
        });
        let codecs = codecs.collect();
        let stored_bytes = sum(|node| node.stored_bytes);
        Self { path: None, stored_bytes, plain_bytes, limit, codecs }
    }

    fn write_text(&self, nodes: u64, out: &mut impl Write) -> io::Result<()> {
        let (name, nodes) = self.path.as_deref().map_or(("Total", nodes), |path| (path, 1));
        writeln!(out, "{name}: {} bytes, {} plain", self.stored_bytes, self.plain_bytes)?;
        writeln!(
            out,
            "{:<16}  {:>12}  {:>8}  {:>8}  {:>12}  {:>12}",
            "COMPRESSION-TYPE", "SIZE", "RATIO", "FIT", "COMPRESS", "DECOMPRESS"
        )?;
        for codec in &self.codecs {
            writeln!(
                out,
                "{:<16}  {:>12}  {:>8.2}  {:>8}  {:>9.3} ms  {:>9.3} ms",
                codec.compression_type,
                codec.compressed_bytes,
                codec.ratio,
                format!("{}/{nodes}", codec.fitting),
                codec.compress_ns as f64 / 1e6,
                codec.decompress_ns as f64 / 1e6
            )?;
        }
        Ok(())
    }
}
