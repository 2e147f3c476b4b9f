//! Where the digits of three adjacent varints are, by the continuation bits of the
//! eight bytes that they lie in.
//!
//! ```text
//!  bytes   9a 03 │ 4e │ 8c 81 01 │ ·· ··     pattern  0b··011001
//!  masks   7f 7f   00   00 00 00   00 00     of the first one
//!          00 00   7f   00 00 00   00 00     of the second
//! ```
//! `pext` with a mask gathers the digits of one varint, lowest first, as the bytes are.

/// The masks of a pattern.
#[repr(align(32))]
#[derive(Clone, Copy)]
pub(crate) struct Masks {
    pub(crate) timestamp: u64,
    pub(crate) offset: u64,
    pub(crate) key: u64,
    /// Bytes that the three take; 0 if they are more than eight, or one is too long.
    pub(crate) len: u8,
}

/// Of every pattern, 8 KiB.
pub(crate) struct Table([Masks; 256]);

pub(crate) static MASKS: Table = Table(table());

impl Table {
    #[allow(clippy::indexing_slicing)] // 256 of them, by a byte
    #[inline(always)]
    pub(crate) const fn of(&self, pattern: u8) -> &Masks {
        &self.0[pattern as usize]
    }
}

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // evaluated by the compiler
const fn table() -> [Masks; 256] {
    let mut table = [Masks { timestamp: 0, offset: 0, key: 0, len: 0 }; 256];
    let mut pattern = 0;
    while pattern < 256 {
        let (timestamp, at) = digits(pattern, 0);
        let (offset, behind) = digits(pattern, at);
        let (key, end) = digits(pattern, behind);
        if end <= 8 && behind - at <= 5 && end - behind <= 5 {
            table[pattern] = Masks { timestamp, offset, key, len: end as u8 };
        }
        pattern += 1;
    }
    table
}

/// The digits of the varint that starts at a byte, and where the next one does: beyond
/// the eight if it does not end in them.
const fn digits(pattern: usize, mut at: u64) -> (u64, u64) {
    let mut mask = 0;
    while at < 8 {
        mask |= 0x7f << (8 * at);
        at += 1;
        if pattern >> (at - 1) & 1 == 0 {
            return (mask, at);
        }
    }
    (mask, 9)
}
