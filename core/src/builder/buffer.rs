//! Where a builder writes: lent memory here, a growing `Vec` in a host.

/// Bytes written one behind the other, and room behind them.
pub trait Buffer {
    /// Bytes that are written.
    fn len(&self) -> usize;

    /// Whether nothing is written.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that it holds without growing, those written included.
    fn capacity(&self) -> usize;

    /// Bytes that it can ever hold: [`Buffer::capacity`], unless it grows.
    fn max_capacity(&self) -> usize {
        self.capacity()
    }

    /// The room behind what is written: at least `least` bytes, for which it grows if it
    /// can and must. Less is there only beyond [`Buffer::max_capacity`].
    fn spare(&mut self, least: usize) -> &mut [u8];

    /// The first `n` bytes of the room, or all of it, are written now.
    fn commit(&mut self, n: usize);

    /// What is written.
    fn written(&self) -> &[u8];

    /// What is written, to change it.
    fn written_mut(&mut self) -> &mut [u8];

    /// Forgets what is written behind the first `len` bytes.
    fn truncate(&mut self, len: usize);
}

impl<B: Buffer + ?Sized> Buffer for &mut B {
    fn len(&self) -> usize {
        (**self).len()
    }

    fn capacity(&self) -> usize {
        (**self).capacity()
    }

    fn max_capacity(&self) -> usize {
        (**self).max_capacity()
    }

    fn spare(&mut self, least: usize) -> &mut [u8] {
        (**self).spare(least)
    }

    fn commit(&mut self, n: usize) {
        (**self).commit(n);
    }

    fn written(&self) -> &[u8] {
        (**self).written()
    }

    fn written_mut(&mut self) -> &mut [u8] {
        (**self).written_mut()
    }

    fn truncate(&mut self, len: usize) {
        (**self).truncate(len);
    }
}

/// A [`Buffer`] of fixed size over lent memory.
#[derive(Debug)]
pub struct LentBuffer<'b> {
    bytes: &'b mut [u8],
    len: usize,
}

impl<'b> LentBuffer<'b> {
    /// Nothing is written yet.
    #[must_use]
    pub const fn new(bytes: &'b mut [u8]) -> Self {
        Self { bytes, len: 0 }
    }

    /// What is written, for as long as the memory is lent.
    #[must_use]
    pub fn into_written(self) -> &'b mut [u8] {
        let len = self.len;
        self.bytes.get_mut(..len).unwrap_or_default()
    }
}

impl Buffer for LentBuffer<'_> {
    fn len(&self) -> usize {
        self.len
    }

    fn capacity(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn spare(&mut self, _least: usize) -> &mut [u8] {
        self.bytes.get_mut(self.len..).unwrap_or_default()
    }

    #[inline]
    fn commit(&mut self, n: usize) {
        self.len = self.len.saturating_add(n).min(self.bytes.len());
    }

    fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn written_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}
