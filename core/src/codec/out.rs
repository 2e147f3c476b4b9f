//! The output of the encoders and of the builder: bytes behind one another, as far as
//! there is room.

/// A slice that is filled from its start.
pub(crate) struct Out<'o> {
    room: &'o mut [u8],
    at: usize,
}

impl<'o> Out<'o> {
    pub(crate) const fn new(room: &'o mut [u8]) -> Self {
        Self { room, at: 0 }
    }

    /// Bytes written.
    pub(crate) const fn len(&self) -> usize {
        self.at
    }

    /// Writes one byte; `None` if there is no room.
    #[cfg(any(feature = "lz4", feature = "snappy"))]
    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) -> Option<()> {
        *self.room.get_mut(self.at)? = byte;
        self.at += 1;
        Some(())
    }

    /// Writes all of these bytes; `None`, and nothing, if there is no room.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at.checked_add(bytes.len())?;
        self.room.get_mut(self.at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(())
    }

    /// Writes as many of these bytes as there is room for; gives their number.
    pub(crate) fn some(&mut self, bytes: &[u8]) -> usize {
        let spare = self.room.get_mut(self.at..).unwrap_or_default();
        let n = bytes.len().min(spare.len());
        if let (Some(to), Some(from)) = (spare.get_mut(..n), bytes.get(..n)) {
            to.copy_from_slice(from);
        }
        self.at += n;
        n
    }

    /// Changes a byte that was written.
    #[cfg(feature = "lz4")]
    #[inline(always)]
    pub(crate) fn set(&mut self, at: usize, byte: u8) -> Option<()> {
        *self.room.get_mut(at)? = byte;
        Some(())
    }
}
