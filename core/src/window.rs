//! Where decoders write: their history, and behind it output not yet read.
//!
//! ```text
//!  0        floor         read           end              len
//!  │ stale  │ history     │ unread output │ spare          │
//! ```
//!
//! `floor` is the start of the present block, member or frame, or of what the
//! buffer still holds of it. A copy never reaches below it, so nothing leaks from
//! one batch into another; bytes behind `end` are never readable.

/// A lent buffer that holds a decoder's history and its unread output.
#[derive(Debug)]
pub struct Window<'w> {
    buf: &'w mut [u8],
    floor: usize,
    read: usize,
    end: usize,
}

/// Positions of a [`Window`], to take it up again over a larger buffer with the
/// same bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    floor: usize,
    read: usize,
    end: usize,
}

impl Marks {
    /// Where the output ends in the buffer.
    #[must_use]
    pub const fn end(&self) -> usize {
        self.end
    }
}

impl<'w> Window<'w> {
    /// An empty window over `buf`.
    #[must_use]
    pub const fn new(buf: &'w mut [u8]) -> Self {
        Self { buf, floor: 0, read: 0, end: 0 }
    }

    /// Goes on where [`Window::marks`] left off, over a buffer that holds the
    /// same bytes and may be longer. Marks beyond the buffer give an empty window.
    #[must_use]
    pub const fn resume(buf: &'w mut [u8], marks: Marks) -> Self {
        let Marks { floor, read, end } = marks;
        if end > buf.len() {
            return Self::new(buf);
        }
        Self { buf, floor, read, end }
    }

    /// The positions, for [`Window::resume`].
    #[must_use]
    pub const fn marks(&self) -> Marks {
        Marks { floor: self.floor, read: self.read, end: self.end }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        (self.floor, self.read, self.end) = (0, 0, 0);
    }

    /// Length of the buffer.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.buf.len()
    }

    /// Output that nobody has read yet.
    #[must_use]
    #[inline]
    pub fn unread(&self) -> &[u8] {
        self.buf.get(self.read..self.end).unwrap_or_default()
    }

    /// Length of [`Window::unread`].
    #[must_use]
    pub const fn unread_len(&self) -> usize {
        self.end - self.read
    }

    /// Takes `n` bytes of the unread output as read.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        self.read = self.read.saturating_add(n).min(self.end);
    }

    /// Room behind the output, for decoders that write by themselves.
    #[must_use]
    pub fn spare(&mut self) -> &mut [u8] {
        self.buf.get_mut(self.end..).unwrap_or_default()
    }

    /// Length of [`Window::spare`].
    #[must_use]
    pub const fn spare_len(&self) -> usize {
        self.buf.len() - self.end
    }

    /// Takes `n` bytes written to [`Window::spare`] as output.
    pub fn commit(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.buf.len());
    }

    /// From here on no copy reaches back: a block, member or frame starts.
    pub fn start_unit(&mut self) {
        self.floor = self.end;
    }

    /// History and spare of the present unit as one slice, and where the spare
    /// starts in it: what inflate calls its output buffer.
    #[must_use]
    pub fn unit(&mut self) -> (&mut [u8], usize) {
        let at = self.end - self.floor;
        (self.buf.get_mut(self.floor..).unwrap_or_default(), at)
    }

    /// The last `n` bytes of output, read or not.
    #[must_use]
    pub fn written(&self, n: usize) -> &[u8] {
        self.buf.get(self.end.saturating_sub(n)..self.end).unwrap_or_default()
    }

    /// Bytes of the present unit that a copy can reach.
    #[must_use]
    pub const fn history_len(&self) -> usize {
        self.end - self.floor
    }

    /// Appends as much of `bytes` as there is room for; gives the count.
    pub fn put(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.spare_len());
        let (Some(to), Some(from)) = (self.spare().get_mut(..n), bytes.get(..n)) else {
            return 0;
        };
        to.copy_from_slice(from);
        self.end += n;
        n
    }

    /// Appends `len` bytes from `distance` back, as far as there is room; the two
    /// may overlap. Gives the count, or `None` if `distance` is 0 or beyond what
    /// is held of the unit.
    pub fn copy_back(&mut self, distance: usize, len: usize) -> Option<usize> {
        if distance == 0 || distance > self.history_len() {
            return None;
        }
        let n = len.min(self.spare_len());
        let (held, spare) = self.buf.split_at_mut_checked(self.end)?;
        let from = held.get(held.len() - distance..)?;
        let to = spare.get_mut(..n)?;
        if distance == 1 {
            to.fill(*from.first()?);
        } else {
            // `from` is one period of the pattern: repeat it.
            for part in to.chunks_mut(distance) {
                part.copy_from_slice(from.get(..part.len())?);
            }
        }
        self.end += n;
        Some(n)
    }

    /// Makes room by moving what is unread, and at least the last `history` bytes
    /// of the unit, to the front of the buffer.
    pub fn slide(&mut self, history: usize) {
        let keep = self.end.saturating_sub(history).max(self.floor).min(self.read);
        if keep > 0
            && let Some(held) = self.buf.get_mut(..self.end)
            && keep <= held.len()
        {
            // Always so: `keep` is at most `read`, and with it no panic is compiled in.
            held.copy_within(keep.., 0);
            self.floor = self.floor.saturating_sub(keep);
            self.read -= keep;
            self.end -= keep;
        }
    }
}

/// A buffer that input arrives in, and is taken from: lent, or owned by a host.
#[derive(Debug)]
pub struct FixedBuf<B> {
    buf: B,
    start: usize,
    end: usize,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> FixedBuf<B> {
    /// Empty, over `buf`.
    #[must_use]
    pub const fn new(buf: B) -> Self {
        Self { buf, start: 0, end: 0 }
    }

    /// Length of the buffer.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buf.as_ref().len()
    }

    /// The buffer itself, to make it longer. What is in it must stay.
    pub fn buffer_mut(&mut self) -> &mut B {
        &mut self.buf
    }

    /// What has arrived and is not taken.
    #[must_use]
    pub fn filled(&self) -> &[u8] {
        self.buf.as_ref().get(self.start..self.end).unwrap_or_default()
    }

    /// Whether nothing more can arrive before something is taken.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.end - self.start >= self.capacity()
    }

    /// Takes `n` bytes.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
    }

    /// All the room there is, for new input.
    #[must_use]
    pub fn spare(&mut self) -> &mut [u8] {
        // Moved only where that gives room worth it: a reader that takes little at a
        // time would otherwise move everything each time.
        let buf = self.buf.as_mut();
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start >= buf.len().saturating_sub(self.end)
            && let Some(moved) = buf.get_mut(..self.end)
            && self.start <= moved.len()
        {
            // Both conditions always hold: with them no panic is compiled in.
            moved.copy_within(self.start.., 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        buf.get_mut(self.end..).unwrap_or_default()
    }

    /// `n` bytes have arrived in [`FixedBuf::spare`].
    pub fn commit(&mut self, n: usize) {
        self.end = self.end.saturating_add(n).min(self.capacity());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_repeat_and_stop_at_the_unit() {
        let mut buf = [0u8; 16];
        let mut window = Window::new(&mut buf);
        assert_eq!(window.put(b"xyz"), 3);
        window.start_unit();
        assert_eq!(window.copy_back(1, 1), None, "the unit is empty");
        assert_eq!(window.put(b"ab"), 2);
        assert_eq!(window.copy_back(3, 1), None, "before the start of the unit");
        assert_eq!(window.copy_back(0, 1), None);
        assert_eq!(window.copy_back(2, 5), Some(5));
        assert_eq!(window.unread(), b"xyzabababa");
        assert_eq!(window.copy_back(1, 99), Some(6), "as far as there is room");
        assert_eq!(window.unread(), b"xyzabababaaaaaaa");
    }

    #[test]
    fn sliding_keeps_history_and_unread() {
        let mut buf = [0u8; 8];
        let mut window = Window::new(&mut buf);
        window.put(b"abcdefgh");
        window.consume(6);
        window.slide(5);
        assert_eq!(window.unread(), b"gh");
        assert_eq!(window.history_len(), 5);
        assert_eq!(window.copy_back(5, 2), Some(2));
        assert_eq!(window.unread(), b"ghde");
        window.consume(4);
        window.start_unit();
        window.slide(8);
        assert_eq!((window.history_len(), window.spare_len()), (0, 8));
    }
}
