//! A buffer for [`logseg_core::MemoryRecordsBuilder`] that grows as Kafka's does.

use logseg_core::builder::Buffer;

/// `ByteBufferOutputStream.java` over a `Vec`: where it is full, it grows by a tenth, or
/// to what is needed if that is more.
///
/// ```
/// use logseg_core::builder::{Buffer, BuilderOptions, MemoryRecordsBuilder};
/// use logseg_core::{BuiltinCompressors, Codec, Cpu, Magic};
/// use std_host::growing::GrowingBuffer;
///
/// let mut compressors = BuiltinCompressors::new();
/// let mut builder = MemoryRecordsBuilder::new(
///     GrowingBuffer::with_capacity(64),
///     BuilderOptions::new(Magic::V2, Codec::None),
///     &mut compressors,
///     Cpu::detect(),
/// )?;
/// builder.append(1_700_000_000_000, None, Some(&[7; 1000]), &[])?;
/// builder.close()?;
/// assert_eq!(builder.into_buffer().into_vec().len(), 61 + 1009);
/// # Ok::<(), logseg_core::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct GrowingBuffer {
    /// All of its capacity, zero behind what was ever written.
    bytes: Vec<u8>,
    len: usize,
}

impl GrowingBuffer {
    /// What it grows by (`REALLOCATION_FACTOR`).
    pub const REALLOCATION_FACTOR: f32 = 1.1;

    /// Holds so many bytes before it grows: `batch.size` of a producer, or the first record
    /// if that is larger.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self { bytes: vec![0; capacity], len: 0 }
    }

    /// What was written.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<u8> {
        self.bytes.truncate(self.len);
        self.bytes
    }
}

impl Buffer for GrowingBuffer {
    fn len(&self) -> usize {
        self.len
    }

    fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// 2^31 − 1, as that of any Java buffer.
    fn max_capacity(&self) -> usize {
        i32::MAX as usize
    }

    fn spare(&mut self, least: usize) -> &mut [u8] {
        let need = self.len.saturating_add(least).min(self.max_capacity());
        if need > self.bytes.len() {
            let grown = (self.bytes.len() as f32 * Self::REALLOCATION_FACTOR) as usize;
            self.bytes.resize(grown.max(need).min(self.max_capacity()), 0);
        }
        &mut self.bytes[self.len..]
    }

    fn commit(&mut self, n: usize) {
        self.len = self.len.saturating_add(n).min(self.bytes.len());
    }

    fn written(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn written_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

#[cfg(test)]
mod tests {
    use logseg_core::builder::{BuilderOptions, MemoryRecordsBuilder};
    use logseg_core::codec::{BuiltinCompressors, lz4_encode};
    use logseg_core::{Batches, Codec, Cpu, Magic};

    use super::*;

    #[test]
    fn it_grows_by_a_tenth_or_to_what_is_needed() {
        let mut buffer = GrowingBuffer::with_capacity(100);
        assert_eq!(buffer.spare(100).len(), 100);
        buffer.commit(100);
        assert_eq!(buffer.spare(1).len(), 10);
        assert_eq!(buffer.spare(500).len(), 500);
        assert_eq!((buffer.len(), buffer.capacity()), (100, 600));
        buffer.truncate(3);
        assert_eq!(buffer.written().len(), 3);
        assert_eq!(GrowingBuffer::default().spare(1).len(), 1);
    }

    /// The worst case of a codec is only asked for, and not made room for.
    #[test]
    fn a_builder_makes_it_as_large_as_its_batch() {
        let mut lz4 = Box::<lz4_encode::Memory>::default();
        for codec in [Codec::None, Codec::Lz4] {
            let mut compressors = BuiltinCompressors::new().with_lz4(&mut lz4);
            let mut builder = MemoryRecordsBuilder::new(
                GrowingBuffer::with_capacity(100),
                BuilderOptions::new(Magic::V2, codec),
                &mut compressors,
                Cpu::detect(),
            )
            .unwrap();
            for n in 0..3000 {
                builder.append(n, Some(b"key"), Some(&[7; 100]), &[]).unwrap();
            }
            builder.close().unwrap();
            let buffer = builder.into_buffer();
            let (len, capacity) = (buffer.len(), buffer.capacity());
            assert!(capacity <= len + len / 10 + 100, "{codec}: {len} in {capacity}");
            let batch = buffer.into_vec();
            assert_eq!(batch.len(), len);
            let batch = Batches::new(&batch, Cpu::detect()).next().unwrap().unwrap();
            assert_eq!((batch.check_crc(), batch.header().record_count), (Ok(()), Some(3000)));
        }
    }
}
