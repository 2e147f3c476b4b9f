//! Encoders of all codecs for [`logseg_core::MemoryRecordsBuilder`], at all of Kafka's
//! levels, on the heap.
//!
//! ```text
//!            input │ step: 16 KiB (gzip, zstd), 64 KiB (lz4) │ library │ waiting │ output
//! ```
//! A step is collected before the library sees it, as Kafka's staging buffers do for gzip
//! and zstd, and what the library makes of it waits for room. So the library is called for
//! steps and not for fields, and what comes out depends on neither the pieces that come in
//! nor on the room there is. snappy is the core's own encoder, whose blocks are those of
//! snappy-java.

use logseg_core::codec::{
    CodecErrorKind, Compress, Compressors, Plain, Written, compress, xerial_encode,
};
use logseg_core::error::{CodecFault, Corruption};
use logseg_core::{Codec, CodecError, Magic, Pause};

use crate::codec_spec::CodecSpec;
use crate::engine::Engine;

/// All encoders of a thread, each made when it is first wanted and kept from then on.
///
/// The contexts of gzip take 268 KB, those of zstd a few megabytes at level 3 and nearly
/// 1 GB at level 22; snappy and lz4 take about 100 KB.
///
/// ```
/// use logseg_core::builder::{BuilderOptions, MemoryRecordsBuilder};
/// use logseg_core::{Codec, Magic};
/// use std_host::compressors::HostCompressors;
/// use std_host::cpu;
/// use std_host::growing::GrowingBuffer;
///
/// let mut compressors = HostCompressors::new().with_level("zstd:9".parse()?);
/// let mut builder = MemoryRecordsBuilder::new(
///     GrowingBuffer::with_capacity(16 << 10),
///     BuilderOptions::new(Magic::V2, Codec::Zstd),
///     &mut compressors,
///     cpu::detect(),
/// )?;
/// builder.append(1_700_000_000_000, Some(b"key"), Some(&[7; 1000]), &[])?;
/// assert!(builder.build()?.len() < 150);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct HostCompressors {
    plain: Plain,
    gzip: Slot,
    snappy: Option<Snappy>,
    snappy_block: Option<usize>,
    lz4: Slot,
    zstd: Slot,
}

type Snappy = xerial_encode::Encoder<Box<xerial_encode::Memory>>;

/// An encoder at a level, the default one unless another is given.
#[derive(Debug, Default)]
struct Slot {
    level: Option<CodecSpec>,
    staged: Option<Staged>,
}

impl HostCompressors {
    /// All codecs at Kafka's default levels.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The level for a codec, from the next batch on; snappy has none, and nothing changes.
    #[must_use]
    pub fn with_level(mut self, spec: CodecSpec) -> Self {
        let slot = match spec.codec() {
            Codec::Gzip => &mut self.gzip,
            Codec::Lz4 => &mut self.lz4,
            Codec::Zstd => &mut self.zstd,
            Codec::None | Codec::Snappy => return self,
        };
        *slot = Slot { level: Some(spec), staged: None };
        self
    }

    /// Bytes of a block of snappy before compression, in place of 32 KiB:
    /// [`xerial_encode::Encoder::with_block_len`].
    #[must_use]
    pub fn with_snappy_blocks(mut self, block_len: usize) -> Self {
        self.snappy = None;
        self.snappy_block = Some(block_len);
        self
    }
}

impl Compressors for HostCompressors {
    /// Makes it at the first call for a codec.
    ///
    /// # Panics
    ///
    /// Without memory for it, as a `Vec` would.
    fn compressor(&mut self, codec: Codec, magic: Magic) -> Option<&mut dyn Compress> {
        let slot = match codec {
            Codec::None => return Some(&mut self.plain),
            Codec::Snappy => {
                let block_len = self.snappy_block.unwrap_or(xerial_encode::BLOCK);
                let snappy = self
                    .snappy
                    .get_or_insert_with(|| Snappy::new(Box::default()).with_block_len(block_len));
                return Some(snappy);
            }
            Codec::Zstd if magic != Magic::V2 => return None,
            Codec::Gzip => &mut self.gzip,
            Codec::Lz4 => &mut self.lz4,
            Codec::Zstd => &mut self.zstd,
        };
        if slot.staged.is_none() {
            let spec = slot.level.or(CodecSpec::new(codec).ok())?;
            slot.staged = Some(Staged::new(spec));
        }
        let staged = slot.staged.as_mut()?;
        staged.magic = magic;
        Some(staged)
    }
}

/// A library's encoder that can be stopped at any byte.
struct Staged {
    engine: Engine,
    magic: Magic,
    /// What the library was not given yet, less than a step between calls.
    stage: Vec<u8>,
    /// What the library gave, of which the first `at` bytes are gone.
    waiting: Vec<u8>,
    at: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fresh,
    Begun,
    Ended,
}

impl std::fmt::Debug for Staged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staged").field("spec", &self.engine.spec()).finish_non_exhaustive()
    }
}

impl Staged {
    fn new(spec: CodecSpec) -> Self {
        let engine = Engine::new(spec);
        let stage = Vec::with_capacity(engine.step());
        Self { engine, magic: Magic::V2, stage, waiting: Vec::new(), at: 0, state: State::Fresh }
    }

    /// Writes what waits, as far as there is room; gives how much that is.
    fn drain(&mut self, out: &mut [u8]) -> usize {
        let waiting = &self.waiting[self.at..];
        let n = waiting.len().min(out.len());
        out[..n].copy_from_slice(&waiting[..n]);
        self.at += n;
        if self.at == self.waiting.len() {
            self.waiting.clear();
            self.at = 0;
        }
        n
    }

    /// Gives the library what is collected.
    fn put(&mut self) -> Result<(), String> {
        if self.state == State::Fresh {
            self.engine.begin(self.magic, &mut self.waiting)?;
            self.state = State::Begun;
        }
        self.engine.put(&self.stage, &mut self.waiting)?;
        self.stage.clear();
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        self.put()?;
        self.engine.end(&mut self.waiting)?;
        self.state = State::Ended;
        Ok(())
    }
}

/// A library that gave up. It does so for lack of memory, and has no more to say.
fn gave_up(_: String) -> CodecError {
    let kind = CodecErrorKind::Fault(CodecFault::Corrupt(Corruption::Data));
    CodecError { kind, at: 0 }
}

impl Compress for Staged {
    fn reset(&mut self) {
        self.stage.clear();
        self.waiting.clear();
        self.at = 0;
        self.state = State::Fresh;
    }

    fn advance(&mut self, input: &[u8], out: &mut [u8]) -> Result<Written, CodecError> {
        let (mut consumed, mut produced) = (0, 0);
        let pause = loop {
            produced += self.drain(&mut out[produced..]);
            if !self.waiting.is_empty() {
                break Pause::WindowFull;
            }
            let rest = &input[consumed..];
            if rest.is_empty() {
                break Pause::InputDry;
            }
            let step = self.engine.step();
            let piece = &rest[..rest.len().min(step - self.stage.len())];
            self.stage.extend_from_slice(piece);
            consumed += piece.len();
            if self.stage.len() == step {
                self.put().map_err(gave_up)?;
            }
        };
        Ok(Written { consumed, produced, pause })
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<Written, CodecError> {
        // Room for what waits comes first, so that no more than a step does.
        let mut produced = self.drain(out);
        if self.waiting.is_empty() && self.state != State::Ended {
            self.end().map_err(gave_up)?;
            produced += self.drain(&mut out[produced..]);
        }
        let pause = if self.waiting.is_empty() { Pause::Finished } else { Pause::WindowFull };
        Ok(Written { consumed: 0, produced, pause })
    }

    fn bound(&self, more: u64) -> u64 {
        let waiting = (self.waiting.len() - self.at) as u64;
        let more = more.saturating_add(self.stage.len() as u64);
        waiting.saturating_add(match self.state {
            State::Fresh => compress::bound(self.engine.spec().codec(), more),
            State::Begun => self.engine.bound(more),
            State::Ended => 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use logseg_core::builder::{Buffer, BuilderOptions, LentBuffer, MemoryRecordsBuilder};
    use logseg_core::error::ErrorKind;

    use super::*;
    use crate::cpu;
    use crate::dump::digest::hex;
    use crate::growing::GrowingBuffer;
    use crate::recompress::Recompressor;

    fn host(spec: &str) -> (Codec, HostCompressors) {
        let spec: CodecSpec = spec.parse().unwrap();
        (spec.codec(), HostCompressors::new().with_level(spec))
    }

    /// Text of few words, then noise, then what came 40 000 bytes before.
    fn data(len: usize) -> Vec<u8> {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            let byte = seed.to_le_bytes()[3];
            match bytes.len() / 30_000 % 3 {
                0 => bytes
                    .extend([&b"offset "[..], b"batch ", b"of ", b"a log "][usize::from(byte % 4)]),
                1 => bytes.push(byte),
                _ => {
                    let at = bytes.len() - 40_000;
                    bytes.extend_from_within(at..at + usize::from(byte));
                    bytes.push(byte);
                }
            }
        }
        bytes.truncate(len);
        bytes
    }

    /// Compresses with inputs and outputs of these sizes; holds every call to the trait.
    fn encode(
        codec: Codec,
        encoder: &mut dyn Compress,
        plain: &[u8],
        input: usize,
        room: usize,
    ) -> Vec<u8> {
        encoder.reset();
        let mut out = Vec::new();
        let most = encoder.bound(plain.len() as u64);
        assert!(most <= compress::bound(codec, plain.len() as u64));
        let mut left = plain.len() as u64;
        let mut step = vec![0; room];
        for piece in plain.chunks(input) {
            let mut rest = piece;
            loop {
                let written = encoder.advance(rest, &mut step).unwrap();
                out.extend(&step[..written.produced]);
                rest = &rest[written.consumed..];
                left -= written.consumed as u64;
                assert!(out.len() as u64 + encoder.bound(left) <= most, "it only falls");
                if written.pause == Pause::InputDry {
                    assert!(rest.is_empty());
                    break;
                }
                assert_eq!((written.pause, written.produced), (Pause::WindowFull, room));
            }
        }
        loop {
            let still = encoder.bound(0);
            let written = encoder.finish(&mut step).unwrap();
            assert!(written.produced as u64 <= still);
            out.extend(&step[..written.produced]);
            if written.pause == Pause::Finished {
                break;
            }
            assert_eq!((written.pause, written.produced), (Pause::WindowFull, room));
        }
        assert_eq!(encoder.bound(0), 0);
        out
    }

    /// What is compressed as a whole is the measure.
    #[test]
    fn any_chunking_gives_what_the_whole_gives() {
        for name in
            ["gzip", "gzip:1", "gzip:9", "lz4", "lz4:1", "lz4:12", "zstd", "zstd:-5", "zstd:9"]
        {
            let (codec, mut compressors) = host(name);
            let mut recompressor = Recompressor::new(name.parse().unwrap());
            let mut whole = Vec::new();
            for len in [0, 1, 100, 16 << 10, 65_535, 65_536, 131_072, 131_073, 400_000] {
                let plain = data(len);
                recompressor.compress(&plain, Magic::V2, &mut whole).unwrap();
                let encoder = compressors.compressor(codec, Magic::V2).unwrap();
                for (input, room) in
                    [(len, len + 100), (1000, 7), (1 << 16, 60_000), (len, 1), (17, 1000)]
                {
                    let parts = encode(codec, encoder, &plain, input.max(1), room);
                    assert!(parts == whole, "{name}: {len} by {input}, {room}");
                }
            }
        }
    }

    /// Most of a stream that shrinks is not held against what is still to come.
    #[test]
    fn what_is_out_is_out() {
        for (name, most) in [("gzip", 100 << 10), ("lz4", 130 << 10), ("zstd", 150 << 10)] {
            let (codec, mut compressors) = host(name);
            let encoder = compressors.compressor(codec, Magic::V2).unwrap();
            let mut out = vec![0; 1 << 20];
            let written = encoder.advance(&vec![7; 4 << 20], &mut out).unwrap();
            assert_eq!(written.pause, Pause::InputDry);
            assert!(encoder.bound(10_000) < most, "{name}: {}", encoder.bound(10_000));
        }
    }

    const T: i64 = 1_700_000_000_000;

    fn v2(builder: &mut MemoryRecordsBuilder<'_, impl Buffer>) {
        builder.append(T, Some(b"k"), Some(&[b'a'; 32]), &[]).unwrap();
        builder.append(T + 1, Some(b"k"), Some(&[b'a'; 32]), &[]).unwrap();
    }

    fn messages(builder: &mut MemoryRecordsBuilder<'_, impl Buffer>) {
        builder.append(T, Some(b"k"), Some(&[b'v'; 20]), &[]).unwrap();
        builder.append(T - 10, None, Some(b"w"), &[]).unwrap();
    }

    /// Batches of Kafka's own classes with one set of encoders.
    #[test]
    fn batches_of_java() {
        let mut compressors = HostCompressors::new();
        for (magic, codec, want) in [
            (
                Magic::V2,
                Codec::Gzip,
                "00000000000000000000005600000000023b4434f80001000000010000018bcfe568000000018bcfe568\
                 01ffffffffffffffffffffffffffff000000021f8b08000000000000fff363606060ca7648240018fc1898\
                 9888510700fb219e3c50000000",
            ),
            (
                Magic::V2,
                Codec::Snappy,
                "00000000000000000000005b00000000025a3bfbc70002000000010000018bcfe568000000018bcfe568\
                 01ffffffffffffffffffffffffffff0000000282534e4150505900000000010000000100000016501c4e00\
                 0000026b40617a010010004e0002028e2800",
            ),
            (
                Magic::V2,
                Codec::Lz4,
                "00000000000000000000005b00000000029e3ddb3b0003000000010000018bcfe568000000018bcfe568\
                 01ffffffffffffffffffffffffffff0000000204224d186040821b0000008f4e000000026b406101000c5f\
                 004e00020228000c50616161610000000000",
            ),
            (
                Magic::V2,
                Codec::Zstd,
                "00000000000000000000005200000000028cc370fb0004000000010000018bcfe568000000018bcfe568\
                 01ffffffffffffffffffffffffffff0000000228b52ffd0058ac0000684e000000026b4061004e00020202\
                 0097227503b8010000",
            ),
            (
                Magic::V0,
                Codec::Lz4,
                "000000000000000b000000538961cdec0003ffffffff0000004504224d1860401a360000001200010091\
                 0a00000023fa2dca8c0f007f016b0000001476010000011f00f00700000b0000000fa50b8f630000ffffff\
                 ff000000017700000000",
            ),
            (
                Magic::V0,
                Codec::Gzip,
                "000000000000000b00000048d5406b610001ffffffff0000003a1f8b08000000000000ff636000032e20\
                 56fea57baa07cc63cc0612226558004435033710f32fe5ee4f6660f80f04202de500fad9b7a24a000000",
            ),
            (
                Magic::V1,
                Codec::Gzip,
                "000000000000000b00000056c5b99d0701010000018bcfe56800ffffffff000000401f8b080000000000\
                 00ff63608003ed97926aad8c400663f7f9a7192011c66c202152860540b580548b5b9c12f286694bfff61f\
                 08409c7200dc96063e5a000000",
            ),
            (
                Magic::V1,
                Codec::Lz4,
                "000000000000000b0000006268b3f52b01030000018bcfe56800ffffffff0000004c04224d186040823d\
                 00000016000100e02be919268501000000018bcfe56818007f016b0000001476010000001e00002a008400\
                 00001738ca124b3700b067f6ffffffff000000017700000000",
            ),
        ] {
            let base = if magic == Magic::V2 { 0 } else { 10 };
            let options = BuilderOptions::new(magic, codec)
                .with_base_offset(base)
                .with_partition_leader_epoch(0);
            let mut memory = [0x5a; 400];
            let lent = LentBuffer::new(&mut memory);
            let mut builder =
                MemoryRecordsBuilder::new(lent, options, &mut compressors, cpu::detect()).unwrap();
            if magic == Magic::V2 {
                v2(&mut builder)
            } else {
                messages(&mut builder)
            }
            assert_eq!(hex(builder.build().unwrap()), want, "{codec} {magic:?}, lent");
            let growing = GrowingBuffer::default();
            let mut builder =
                MemoryRecordsBuilder::new(growing, options, &mut compressors, cpu::detect())
                    .unwrap();
            if magic == Magic::V2 {
                v2(&mut builder)
            } else {
                messages(&mut builder)
            }
            assert_eq!(hex(builder.build().unwrap()), want, "{codec} {magic:?}, growing");
        }
    }

    #[test]
    fn a_stream_that_was_left_leaves_nothing_behind() {
        for name in ["gzip", "snappy", "lz4", "lz4:12", "zstd", "zstd:9"] {
            let (codec, mut compressors) = host(name);
            let plain = data(300_000);
            let mut first = None;
            for (taken, finish) in [(0, false), (100, false), (200_000, false), (200_000, true)] {
                let encoder = compressors.compressor(codec, Magic::V2).unwrap();
                encoder.reset();
                encoder.advance(&plain[100_000..100_000 + taken], &mut [0; 1000]).unwrap();
                if finish {
                    // It waits for room.
                    let written = encoder.finish(&mut [0; 10]).unwrap();
                    assert_eq!(written.pause, Pause::WindowFull);
                }
                let encoder = compressors.compressor(codec, Magic::V2).unwrap();
                let packed = encode(codec, encoder, &plain, 5000, 3000);
                assert!(*first.get_or_insert(packed.clone()) == packed, "{name}");
            }
        }
    }

    #[test]
    fn snappy_has_blocks_of_a_size_of_ones_own() {
        let plain = data(5000);
        let mut compressors = HostCompressors::new().with_snappy_blocks(1 << 10);
        let encoder = compressors.compressor(Codec::Snappy, Magic::V1).unwrap();
        let packed = encode(Codec::Snappy, encoder, &plain, 5000, 10_000);
        let (mut rest, mut blocks) = (&packed[16..], 0);
        while let Some((len, tail)) = rest.split_first_chunk() {
            rest = &tail[u32::from_be_bytes(*len) as usize..];
            blocks += 1;
        }
        assert_eq!(blocks, 5);
    }

    #[test]
    fn zstd_is_only_in_v2() {
        let mut compressors = HostCompressors::new();
        for magic in [Magic::V0, Magic::V1] {
            assert!(compressors.compressor(Codec::Zstd, magic).is_none());
            let options = BuilderOptions::new(magic, Codec::Zstd);
            let growing = GrowingBuffer::default();
            let refused =
                MemoryRecordsBuilder::new(growing, options, &mut compressors, cpu::detect());
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::UnknownCodec { id: 4 });
        }
    }
}
