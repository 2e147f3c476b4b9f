//! The slice source: a whole segment, or part of one, in memory.

use crate::batch::{Batch, BatchHeader, Framing};
use crate::cpu::Cpu;
use crate::error::Error;
use crate::unpack::{Found, Source, sealed::Sealed};

/// How the input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Tail {
    /// What lies behind the last whole entry.
    pub kind: TailKind,
    /// Where it starts: the end of the last whole entry.
    pub position: u64,
    /// How long it is.
    pub bytes: u64,
}

/// What lies behind the last whole entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum TailKind {
    /// Nothing.
    Clean,
    /// The start of an entry, as a live segment or a crash leaves it.
    PartialBatch,
    /// Zero bytes: preallocated and not used yet.
    ZeroPadding,
    /// What is no entry. An error told of it before.
    Garbage,
}

/// What comes next in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// An entry that is there as a whole.
    Whole(BatchHeader),
    /// No further entry.
    End(Tail),
}

impl Frame {
    /// Looks at what `rest`, the input from `position` to its end, starts with.
    ///
    /// Errors: those of [`Framing::parse`] and [`Framing::check_partial`]; nothing
    /// tells then where a next entry might be.
    pub fn parse(rest: &[u8], position: u64) -> Result<Self, Error> {
        let end = |kind| Ok(Self::End(Tail { kind, position, bytes: rest.len() as u64 }));
        let Some(prefix) = rest.first_chunk() else {
            return end(match rest {
                [] => TailKind::Clean,
                _ if rest.iter().all(|&byte| byte == 0) => TailKind::ZeroPadding,
                _ => TailKind::PartialBatch,
            });
        };
        if *prefix == [0; Framing::LEN] && rest.iter().all(|&byte| byte == 0) {
            return end(TailKind::ZeroPadding);
        }
        let framing = Framing::parse(prefix, position)?;
        if framing.total() > rest.len() as u64 {
            framing.check_partial(rest, position)?;
            return end(TailKind::PartialBatch);
        }
        BatchHeader::parse(rest, position).map(Self::Whole)
    }
}

/// Walks the entries of a slice, without copying and without looking inside.
///
/// A batch that is corrupt inside does not stop it, since the length is outside
/// of what is compressed. Yields `Err` once, as the last item, where no entry
/// starts; [`Batches::tail`] then says what is left.
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    rest: &'a [u8],
    position: u64,
    cpu: Cpu,
    tail: Option<Tail>,
    /// As a [`Source`]: the present entry, and how much of it is read.
    open: &'a [u8],
    read: usize,
}

impl<'a> Batches<'a> {
    /// Reads `segment` from its first byte.
    #[must_use]
    pub const fn new(segment: &'a [u8], cpu: Cpu) -> Self {
        Self::at(segment, 0, cpu)
    }

    /// Reads a part of a segment that starts at `position`.
    #[must_use]
    pub const fn at(part: &'a [u8], position: u64, cpu: Cpu) -> Self {
        Self { rest: part, position, cpu, tail: None, open: &[], read: 0 }
    }

    /// How the input ended, once it has.
    #[must_use]
    pub const fn tail(&self) -> Option<Tail> {
        self.tail
    }

    fn next_header(&mut self) -> Result<Option<BatchHeader>, Error> {
        if self.tail.is_some() {
            return Ok(None);
        }
        match Frame::parse(self.rest, self.position) {
            Ok(Frame::Whole(header)) => {
                let size = usize::try_from(header.size).unwrap_or(usize::MAX);
                let (entry, rest) = self.rest.split_at_checked(size).unwrap_or((self.rest, &[]));
                self.open = entry;
                self.rest = rest;
                self.position = self.position.saturating_add(header.size);
                Ok(Some(header))
            }
            Ok(Frame::End(tail)) => {
                self.tail = Some(tail);
                Ok(None)
            }
            Err(error) => {
                let bytes = self.rest.len() as u64;
                self.tail = Some(Tail { kind: TailKind::Garbage, position: self.position, bytes });
                Err(error)
            }
        }
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_header() {
            Ok(header) => header.map(|header| Ok(Batch::new(header, self.open, self.cpu))),
            Err(error) => Some(Err(error)),
        }
    }
}

impl Sealed for Batches<'_> {}

impl Source for Batches<'_> {
    fn next_batch(&mut self) -> Result<Found, Error> {
        self.read = 0;
        Ok(match (self.next_header()?, self.tail) {
            (Some(header), _) => Found::Batch(header),
            (None, Some(tail)) => Found::End(tail),
            (None, None) => Found::NeedInput,
        })
    }

    fn whole(&self) -> Option<&[u8]> {
        Some(self.open)
    }

    #[inline]
    fn view(&self) -> &[u8] {
        self.open.get(self.read..).unwrap_or_default()
    }

    fn read(&self) -> u64 {
        self.read as u64
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        self.read = self.read.saturating_add(n).min(self.open.len());
    }

    fn rewind(&mut self, to: u64) {
        self.read = usize::try_from(to).unwrap_or(usize::MAX).min(self.read);
    }

    fn dry(&self) -> Result<bool, Error> {
        Ok(false)
    }

    fn cpu(&self) -> Cpu {
        self.cpu
    }
}
