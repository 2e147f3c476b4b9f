//! Which byte goes where when three adjacent varints are decoded at once.
//!
//! The continuation bits of eight bytes, as one byte, say where the three end. A shuffle
//! brings each of them into four bytes of its own, the rest of which becomes zero:
//!
//! ```text
//!  bytes      9a 03 │ 4e │ 8c 81 01 │ ··        continuation bits  0b··011001
//!  shuffle    0  1 ─ ─  2 ─ ─ ─  3  4  5 ─ ─ ─ ─ ─
//! ```

/// Shuffle control for each pattern of continuation bits; ─ is [`NONE`]. Its last byte
/// is [`NONE`] as well, plus the number of bytes that the three take together; plus
/// nothing if they are more than eight, or one of them more than four.
#[repr(align(16))]
pub(crate) struct Controls([[u8; 16]; 256]);

/// Takes no byte: both `pshufb` and `tbl` give zero for it and what is greater.
pub(crate) const NONE: u8 = 0x80;

/// Most bytes of a varint, which has four for itself.
const MOST: usize = 4;

pub(crate) static CONTROLS: Controls = Controls(controls());

impl Controls {
    /// Of a pattern.
    #[allow(clippy::indexing_slicing)] // a byte, and 256 of them
    #[inline(always)]
    pub(crate) const fn of(&self, pattern: u8) -> &[u8; 16] {
        &self.0[pattern as usize]
    }
}

#[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // evaluated by the compiler
const fn controls() -> [[u8; 16]; 256] {
    let mut controls = [[NONE; 16]; 256];
    let mut pattern = 0;
    while pattern < 256 {
        let (mut at, mut varint) = (0, 0);
        while varint < 3 {
            let start = at;
            while at < 8 && at - start < MOST {
                controls[pattern][varint * MOST + at - start] = at as u8;
                at += 1;
                if pattern >> (at - 1) & 1 == 0 {
                    break;
                }
            }
            let ends = at > start && pattern >> (at - 1) & 1 == 0;
            if !ends {
                break;
            }
            varint += 1;
        }
        if varint == 3 {
            controls[pattern][15] = NONE + at as u8;
        }
        pattern += 1;
    }
    controls
}
