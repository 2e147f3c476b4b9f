//! Copies of the LZ77 decoders, which write more than they have to.
//!
//! ```text
//!  0               at            end       SCRIBBLE       buf.len()
//!  │ output        │ room        │ never output   │ ·····  │
//!                  copy ──▶ scribble ──▶
//! ```
//! A short copy costs less if it moves a fixed number of bytes and the next one
//! overwrites what was too much. What is written behind the output is never part of
//! it, and there is always room for it: `at ≤ end` and `end + SCRIBBLE ≤ buf.len()`.

/// Bytes behind its own that a copy may write.
const SCRIBBLE: usize = 32;

/// The output of a decoder, as long as there is ample room for it.
pub(crate) struct Sink<'a> {
    buf: &'a mut [u8],
    at: usize,
    end: usize,
}

impl<'a> Sink<'a> {
    /// Goes on behind the first `at` bytes of `buf`, which copies may reach, up to
    /// `limit`. `None` if there is no room to be generous.
    #[inline]
    pub(crate) fn new(buf: &'a mut [u8], at: usize, limit: usize) -> Option<Self> {
        let end = buf.len().checked_sub(SCRIBBLE)?.min(limit);
        (at <= end).then_some(Self { buf, at, end })
    }

    /// Where the output ends in the buffer.
    #[inline(always)]
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Appends the first `len` of these bytes, at most all. False, and nothing, if there
    /// is no room.
    #[inline(always)]
    pub(crate) fn short(&mut self, bytes: &[u8; 16], len: usize) -> bool {
        if len > bytes.len() || len > self.end - self.at {
            return false;
        }
        // SAFETY: the 16 bytes from `at` lie within `buf`, since at + 16 ≤ end + SCRIBBLE
        // ≤ buf.len(). `bytes` is not part of `buf`, which is borrowed exclusively.
        unsafe {
            let to = self.buf.as_mut_ptr().add(self.at);
            to.cast::<[u8; 16]>().write_unaligned(*bytes);
        }
        self.at += len;
        true
    }

    /// Appends `bytes`. False, and nothing, if there is no room.
    #[inline(always)]
    pub(crate) fn long(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.end - self.at {
            return false;
        }
        let spare = self.buf.get_mut(self.at..).unwrap_or_default();
        let Some(to) = spare.get_mut(..bytes.len()) else { return false };
        to.copy_from_slice(bytes);
        self.at += bytes.len();
        true
    }

    /// Appends `len` bytes from `distance` back; the two may overlap. False, and
    /// nothing, if there is no room or the distance reaches too far.
    #[inline(always)]
    pub(crate) fn repeat(&mut self, distance: usize, len: usize) -> bool {
        // A distance of 0 wraps to one that is too far.
        if distance.wrapping_sub(1) >= self.at || len > self.end - self.at {
            return false;
        }
        let end = self.at + len;
        // SAFETY: 1 ≤ distance ≤ at and end ≤ self.end were just checked. Everywhere
        // below `from` ≥ at − distance ≥ 0 and `from` < `to`, so that only the highest
        // byte written, behind `to`, can leave `buf`: it is below end + 16 in the loop of
        // 16 (the first step starts at `at` ≤ end, any other below end), below at + 15 in
        // the one that doubles (`to` is at + 0, 1 and 3 at the most, or less far) and
        // below end + 8 in the last one. All are at most self.end + SCRIBBLE ≤ buf.len().
        // A chunk is loaded before it is stored, so the two may overlap, and all bytes
        // of `buf` are initialised. No reference to `buf` is used in between.
        unsafe {
            let base = self.buf.as_mut_ptr();
            let (mut from, mut to) = (base.add(self.at - distance), base.add(self.at));
            let end = base.add(end);
            if distance >= 16 {
                loop {
                    let chunk = from.cast::<[u8; 16]>().read_unaligned();
                    to.cast::<[u8; 16]>().write_unaligned(chunk);
                    (from, to) = (from.add(16), to.add(16));
                    if to >= end {
                        break;
                    }
                }
            } else {
                // Less than a chunk repeats itself. Each step doubles what is there of it,
                // up to a chunk or more.
                let mut distance = distance;
                while distance < 8 {
                    let chunk = from.cast::<[u8; 8]>().read_unaligned();
                    to.cast::<[u8; 8]>().write_unaligned(chunk);
                    to = to.add(distance);
                    distance *= 2;
                }
                while to < end {
                    let chunk = from.cast::<[u8; 8]>().read_unaligned();
                    to.cast::<[u8; 8]>().write_unaligned(chunk);
                    (from, to) = (from.add(8), to.add(8));
                }
            }
        }
        self.at = end;
        true
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    /// What is left of the buffer behind the output must be as it was, but for the
    /// scribble; what is before it must be what was there, then the copy.
    #[test]
    fn a_copy_is_what_it_says_for_every_distance_length_and_room() {
        for distance in 0..40usize {
            for len in 0..80usize {
                for spare in [0, 31, 32, len + 31, len + 32, 200] {
                    let mut buf: Vec<u8> = (0..35 + spare).map(|i| i as u8).collect();
                    let held = buf.clone();
                    let ample = spare >= 32 && len + 32 <= spare;
                    let Some(mut sink) = Sink::new(&mut buf, 35, usize::MAX) else {
                        assert!(spare < 32);
                        continue;
                    };
                    let done = sink.repeat(distance, len);
                    assert_eq!(done, ample && (1..=35).contains(&distance));
                    assert_eq!(sink.at(), if done { 35 + len } else { 35 });
                    let end = sink.at();
                    let mut want = held.clone();
                    for at in 35..end {
                        want[at] = want[at - distance];
                    }
                    assert_eq!(buf[..end], want[..end], "{len} from {distance}");
                    let behind = if done { end + SCRIBBLE } else { end };
                    assert_eq!(buf[behind..], held[behind..]);
                }
            }
        }
    }

    #[test]
    fn literals_keep_to_the_limit() {
        let mut buf = [0u8; 64];
        let mut sink = Sink::new(&mut buf, 3, 20).unwrap();
        assert!(!sink.short(&[1; 16], 17), "more than there are");
        assert!(sink.short(&[1; 16], 2));
        assert!(!sink.long(&[2; 16]));
        assert!(sink.long(&[2; 15]));
        assert!(!sink.short(&[3; 16], 1));
        assert!(!sink.repeat(1, 1));
        assert!(sink.short(&[3; 16], 0));
        assert_eq!(sink.at(), 20);
        assert_eq!(
            buf[..20],
            *b"\0\0\0\x01\x01\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02"
        );
        assert!(Sink::new(&mut buf, 33, 40).is_none(), "no room to scribble");
        assert!(Sink::new(&mut buf, 4, 3).is_none(), "beyond the limit already");
    }
}
