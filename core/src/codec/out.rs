//! The output of the encoders and of the builder: bytes behind one another, as far as
//! there is room.

use crate::varint::Varlong;

/// Copies `N` to 2 × `N` bytes. False, and nothing, for other lengths.
#[inline(always)]
fn halves<const N: usize>(to: &mut [u8], from: &[u8]) -> bool {
    if to.len() > 2 * N {
        return false;
    }
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else {
        return false;
    };
    if let Some(to) = to.first_chunk_mut() {
        *to = *first;
    }
    if let Some(to) = to.last_chunk_mut() {
        *to = *last;
    }
    true
}

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

    /// The same for bytes that are few more often than not: these are not worth the call of
    /// a copy of any length.
    #[inline(always)]
    pub(crate) fn field(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at.checked_add(bytes.len())?;
        let to = self.room.get_mut(self.at..end)?;
        // Twice the size covers up to twice as many, whose halves overlap.
        if !(halves::<16>(to, bytes) || halves::<8>(to, bytes)) {
            to.copy_from_slice(bytes);
        }
        self.at = end;
        Some(())
    }

    /// Writes a zig-zag varlong; `None`, and nothing, if there is no room.
    #[inline(always)]
    pub(crate) fn varlong(&mut self, value: Varlong) -> Option<()> {
        let room = self.room.get_mut(self.at..)?;
        match (value.word(), room.first_chunk_mut()) {
            // What is behind it is written later on.
            (Some(word), Some(to)) => {
                *to = word.to_le_bytes();
                self.at += value.len();
                Some(())
            }
            _ => {
                let (bytes, len) = value.bytes();
                self.bytes(bytes.get(..len)?)
            }
        }
    }

    /// Writes a byte of zero between two zig-zag varlongs; `None`, and no more than one of
    /// them, if there is no room.
    #[inline(always)]
    pub(crate) fn varlongs(&mut self, first: Varlong, second: Varlong) -> Option<()> {
        let room = self.room.get_mut(self.at..)?;
        match (first.word(), second.word(), room.first_chunk_mut()) {
            (Some(before), Some(behind), Some(to)) if first.len() + second.len() < 8 => {
                let word = u64::from(before) | u64::from(behind) << (8 * (first.len() + 1));
                *to = word.to_le_bytes();
                self.at += first.len() + 1 + second.len();
                Some(())
            }
            _ => {
                self.varlong(first)?;
                self.byte(0)?;
                self.varlong(second)
            }
        }
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
