//! The streaming source: input in pieces of any size, from one buffer that is lent.
//!
//! ```text
//!  spare + commit, or push         next entry
//!  ───────────▶ [ FixedBuf ] ──▶ fits the buffer:  whole; CRC before any record
//!                                 does not:        pass-through, as it arrives
//! ```

use crate::batch::legacy::Message;
use crate::batch::{Batch, BatchHeader, Framing, Magic};
use crate::batches::{Frame, Tail, TailKind};
use crate::cpu::Cpu;
use crate::error::{Error, ErrorKind};
use crate::unpack::{Found, Source, sealed::Sealed};
use crate::window::FixedBuf;

/// Bytes that may be hashed in search of an entry, to begin with and then for each byte
/// passed over: bytes that look like headers everywhere must not cost a hash each.
const CREDIT: u64 = 16 << 20;
const CREDIT_PER_BYTE: u64 = 256;

/// Reads a segment that arrives bit by bit.
///
/// ```
/// use logseg_core::{BatchReader, Builtin, Cpu, Event, Unpacker};
/// # let mut file: &[u8] = &[];
/// # fn read(file: &mut &[u8], to: &mut [u8]) -> usize {
/// #     let n = to.len().min(file.len());
/// #     to[..n].copy_from_slice(&file[..n]);
/// #     *file = &file[n..];
/// #     n
/// # }
/// let (mut input, mut window) = ([0; 64 << 10], [0; 256 << 10]);
/// let mut reader = BatchReader::new(&mut input, Cpu::detect());
/// let mut unpacker = Unpacker::new(Builtin::new(), &mut window);
/// let mut records = 0;
/// loop {
///     match unpacker.poll(&mut reader)? {
///         Event::NeedInput => match read(&mut file, reader.spare()) {
///             0 => reader.finish(),
///             n => reader.commit(n),
///         },
///         Event::Record(_) => records += 1,
///         Event::BatchEnd(end) => end.verdict?,
///         Event::End(_) => break,
///         Event::Batch(_) | Event::Piece(_) => {}
///     }
/// }
/// # Ok::<(), logseg_core::Error>(())
/// ```
#[derive(Debug)]
pub struct BatchReader<B> {
    input: FixedBuf<B>,
    /// Position of the first byte that is not taken.
    position: u64,
    cpu: Cpu,
    /// No more will arrive.
    finished: bool,
    /// Bytes that [`BatchReader::resync`] may still hash.
    credit: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Between,
    /// An entry that is in the buffer, and how much of it is read.
    Whole {
        size: usize,
        read: usize,
    },
    /// An entry that is taken as it arrives: its start, its size, how much is taken.
    Passing {
        start: u64,
        size: u64,
        taken: u64,
        cut: Error,
    },
    /// Zero bytes since this position.
    Zeros {
        start: u64,
    },
    /// What is no entry, since this position.
    Garbage {
        start: u64,
    },
    Ended(Tail),
}

/// What [`BatchReader::poll_entry`] tells.
#[derive(Debug)]
pub enum Entry<'a> {
    /// The reader has to be given more, or told that there is no more.
    NeedInput,
    /// An entry, whole.
    Whole(Batch<'a>),
    /// An entry that is larger than the buffer: its header. It comes again until the
    /// buffer is made longer, or the entry is passed over.
    Large(BatchHeader),
    /// The input is over.
    End(Tail),
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> BatchReader<B> {
    /// Least buffer: a v2 header.
    pub const LEAST: usize = 61;

    /// Reads a segment from its first byte, through a buffer of at least
    /// [`BatchReader::LEAST`] bytes. Batches that fit are checked as a whole before
    /// anything of them is handed out.
    #[must_use]
    pub const fn new(buffer: B, cpu: Cpu) -> Self {
        Self::at(buffer, 0, cpu)
    }

    /// Reads input that starts at `position` of a segment.
    #[must_use]
    pub const fn at(buffer: B, position: u64, cpu: Cpu) -> Self {
        let input = FixedBuf::new(buffer);
        Self { input, position, cpu, finished: false, credit: CREDIT, state: State::Between }
    }

    /// Room for input. It is best asked for when [`crate::Event::NeedInput`] says so: then
    /// there is some. At other times it may be empty, which is not the end of the input,
    /// and topping up a buffer that is nearly full moves it each time.
    #[must_use]
    pub fn spare(&mut self) -> &mut [u8] {
        self.input.spare()
    }

    /// `n` bytes have been written to [`BatchReader::spare`].
    pub fn commit(&mut self, n: usize) {
        self.input.commit(n);
    }

    /// Copies as much of `bytes` as there is room for; gives the count.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let spare = self.input.spare();
        let n = spare.len().min(bytes.len());
        if let (Some(to), Some(from)) = (spare.get_mut(..n), bytes.get(..n)) {
            to.copy_from_slice(from);
        }
        self.input.commit(n);
        n
    }

    /// The input is over.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Position of the first byte that is not read.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Position of the end of what is done with: behind the present entry if that is
    /// whole or passed over.
    #[must_use]
    pub const fn read_to(&self) -> u64 {
        match self.state {
            State::Whole { size, .. } => self.position + size as u64,
            _ => self.position,
        }
    }

    /// Whether the present entry is in the buffer as a whole.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        matches!(self.state, State::Whole { .. })
    }

    /// Whether the buffer has no room until something in it is read.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.input.is_full()
    }

    /// The present entry, if it is in the buffer as a whole.
    #[must_use]
    pub fn entry(&self) -> Option<&[u8]> {
        Source::whole(self)
    }

    /// The buffer itself, for a host that can make it longer. Bytes in it must stay.
    pub fn buffer_mut(&mut self) -> &mut B {
        self.input.buffer_mut()
    }

    /// The next entry as a whole, for who has other means than an
    /// [`crate::Unpacker`]. The two can be mixed from one entry to the next.
    ///
    /// Errors: as [`crate::Unpacker::poll`].
    pub fn poll_entry(&mut self) -> Result<Entry<'_>, Error> {
        self.close();
        let cpu = self.cpu;
        match self.next(false)? {
            Found::NeedInput => Ok(Entry::NeedInput),
            Found::End(tail) => Ok(Entry::End(tail)),
            Found::Batch(header) => Ok(match self.state {
                State::Whole { size, .. } => {
                    let bytes = self.input.filled().get(..size).unwrap_or_default();
                    Entry::Whole(Batch::new(header, bytes, cpu))
                }
                _ => Entry::Large(header),
            }),
        }
    }

    /// Reads past an entry that [`Entry::Large`] told of: true once that is done, or the
    /// input has ended in it, as the next poll then says.
    ///
    /// Errors: [`ErrorKind::NotASegment`], if it ended in what was no entry.
    pub fn pass_over(&mut self) -> Result<bool, Error> {
        if matches!(self.state, State::Between) {
            self.look(true)?;
        }
        let n = Source::view(self).len();
        Source::consume(self, n);
        match self.state {
            State::Passing { size, taken, cut, .. } if taken < size && self.finished => {
                match cut.kind() {
                    ErrorKind::NotASegment { .. } => Err(cut),
                    _ => Ok(true),
                }
            }
            State::Passing { size, taken, .. } => Ok(taken == size),
            _ => Ok(true),
        }
    }

    /// After an error: finds the next entry, and gives the bytes passed over. `None`
    /// if more input is needed, or if it is over (as the next poll then says).
    ///
    /// An entry that fits the buffer counts only if its checksum is right; a larger one
    /// must look like one from its header.
    pub fn resync(&mut self) -> Option<core::ops::Range<u64>> {
        let State::Garbage { start } = self.state else { return None };
        loop {
            // Not at the start itself: that is where the error is.
            let from = usize::from(self.position == start);
            let (skip, found) = self.candidate(from);
            self.take(skip);
            self.credit = self.credit.saturating_add(CREDIT_PER_BYTE * skip as u64);
            if found {
                self.state = State::Between;
                return Some(start..self.position);
            }
            if skip == 0 {
                return None;
            }
        }
    }

    /// How many bytes cannot be the start of an entry, and whether one starts there.
    /// Where that depends on bytes to come, they are waited for.
    fn candidate(&mut self, from: usize) -> (usize, bool) {
        let (filled, mut credit) = (self.input.filled(), self.credit);
        let mut result = (filled.len(), false);
        for at in from..filled.len() {
            let rest = filled.get(at..).unwrap_or_default();
            match self.starts_entry(rest, &mut credit) {
                Some(true) => {
                    result = (at, true);
                    break;
                }
                Some(false) => {}
                None if self.finished => {}
                // Bytes before it are of no use.
                None => {
                    result = (at, false);
                    break;
                }
            }
        }
        self.credit = credit;
        result
    }

    /// Whether `rest` starts with an entry; `None` if there is too little to say.
    fn starts_entry(&self, rest: &[u8], credit: &mut u64) -> Option<bool> {
        let prefix = rest.first_chunk()?;
        let Ok(framing) = Framing::parse(prefix, 0) else { return Some(false) };
        if rest.len() < Self::LEAST && framing.total() > rest.len() as u64 {
            return None;
        }
        if framing.check_partial(rest, 0).is_err() {
            return Some(false);
        }
        let size = usize::try_from(framing.total()).unwrap_or(usize::MAX);
        if size > self.input.capacity() {
            return Some(BatchHeader::parse(rest, 0).is_ok_and(|header| header.is_typical()));
        }
        let entry = rest.get(..size)?;
        let header = BatchHeader::parse(entry, 0).ok()?;
        // Before it is hashed, what costs nothing: the fields of a message fit it.
        if header.magic != Magic::V2 && Message::parse(entry).is_err() {
            return Some(false);
        }
        let Some(left) = credit.checked_sub(header.size) else { return Some(false) };
        *credit = left;
        Some(Batch::new(header, entry, self.cpu).check_crc().is_ok())
    }

    /// Whether what follows the present entry fits it being one: an entry, zeros, or
    /// the end. If not, its size field may be what is wrong with it.
    #[must_use]
    pub fn is_followed_up(&self) -> bool {
        let Some(behind) = self.behind() else { return true };
        match behind.first_chunk() {
            Some(prefix) if *prefix == [0; Framing::LEN] => true,
            Some(prefix) => Framing::parse(prefix, 0)
                .is_ok_and(|framing| framing.check_partial(behind, 0).is_ok()),
            None => true,
        }
    }

    /// Whether enough is there for [`BatchReader::is_followed_up`] to say, or no more can
    /// be.
    #[must_use]
    pub fn knows_what_follows(&self) -> bool {
        let Some(behind) = self.behind() else { return true };
        self.finished || self.is_full() || behind.len() >= Framing::LEN
    }

    /// What is there behind the present entry, if that is at its end.
    fn behind(&self) -> Option<&[u8]> {
        match self.state {
            State::Whole { size, .. } => self.input.filled().get(size..),
            State::Passing { size, taken, .. } if taken == size => Some(self.input.filled()),
            _ => None,
        }
    }

    /// Takes the present entry, if it is in the buffer or nothing of it is read, for
    /// garbage after all, or what comes next if none is open: [`BatchReader::resync`] then
    /// looks for an entry from its second byte on.
    pub fn distrust(&mut self) {
        if let State::Between | State::Whole { .. } | State::Passing { taken: 0, .. } = self.state {
            self.state = State::Garbage { start: self.position };
        }
    }

    fn take(&mut self, n: usize) {
        self.input.consume(n);
        self.position = self.position.saturating_add(n as u64);
    }

    fn end(&mut self, kind: TailKind, position: u64, bytes: u64) -> Found {
        let tail = Tail { kind, position, bytes };
        self.state = State::Ended(tail);
        Found::End(tail)
    }

    /// The entry that is open is done with.
    fn close(&mut self) {
        match self.state {
            State::Whole { size, .. } => {
                self.take(size);
                self.state = State::Between;
            }
            // It ends with the input.
            State::Passing { start, size, taken, cut } if taken < size && self.finished => {
                self.take(self.input.filled().len());
                let kind = match cut.kind() {
                    ErrorKind::NotASegment { .. } => TailKind::Garbage,
                    _ => TailKind::PartialBatch,
                };
                self.end(kind, start, self.position - start);
            }
            // Nobody wants the rest of it.
            State::Passing { size, taken, .. } => {
                let left = usize::try_from(size - taken).unwrap_or(usize::MAX);
                Source::consume(self, self.input.filled().len().min(left));
                if matches!(self.state, State::Passing { size, taken, .. } if taken == size) {
                    self.state = State::Between;
                } else if self.finished {
                    self.close();
                }
            }
            _ => {}
        }
    }

    fn next(&mut self, passing: bool) -> Result<Found, Error> {
        match self.state {
            State::Between => self.look(passing),
            State::Zeros { start } => self.zeros(start),
            State::Garbage { start } => Ok(self.garbage(start)),
            State::Ended(tail) => Ok(Found::End(tail)),
            State::Whole { .. } | State::Passing { .. } => Ok(Found::NeedInput),
        }
    }

    /// The next entry, if enough of it is there. One that is larger than the buffer is
    /// opened only if it may pass through.
    fn look(&mut self, passing: bool) -> Result<Found, Error> {
        let (position, finished) = (self.position, self.finished);
        let rest = self.input.filled();
        let (len, capacity) = (rest.len(), self.input.capacity());
        if capacity < Self::LEAST {
            // Nothing can be read, now or later.
            self.take(len);
            self.end(TailKind::Garbage, position, len as u64);
            let kind =
                ErrorKind::BufferTooSmall { need: Self::LEAST as u64, have: capacity as u64 };
            return Err(kind.at(position));
        }
        let Some(prefix) = rest.first_chunk::<{ Framing::LEN }>() else {
            if !finished {
                return Ok(Found::NeedInput);
            }
            let kind = match Frame::parse(rest, position)? {
                Frame::End(tail) => tail.kind,
                Frame::Whole(_) => TailKind::PartialBatch,
            };
            self.take(len);
            return Ok(self.end(kind, position, len as u64));
        };
        if *prefix == [0; Framing::LEN] {
            self.state = State::Zeros { start: position };
            return self.zeros(position);
        }
        let framing = match Framing::parse(prefix, position) {
            Ok(framing) => framing,
            Err(error) => return Err(self.lose(position, error)),
        };
        let total = framing.total();
        let size = usize::try_from(total).unwrap_or(usize::MAX);
        // What is cut, and may not pass through, is told as the tail right away.
        let enough = if size <= capacity || (finished && !passing) { size } else { Self::LEAST };
        if len < enough {
            if !finished {
                return Ok(Found::NeedInput);
            }
            if let Err(error) = framing.check_partial(rest, position) {
                return Err(self.lose(position, error));
            }
            self.take(len);
            return Ok(self.end(TailKind::PartialBatch, position, len as u64));
        }
        let header = match BatchHeader::parse(rest, position) {
            Ok(header) => header,
            Err(error) => return Err(self.lose(position, error)),
        };
        self.state = if size <= capacity {
            State::Whole { size, read: 0 }
        } else if !passing {
            State::Between
        } else {
            let cut = framing.check_partial(rest, position).err();
            let cut = cut.unwrap_or(ErrorKind::PartialBatch { size: total }.at(position + 8));
            State::Passing { start: position, size: total, taken: 0, cut }
        };
        Ok(Found::Batch(header))
    }

    /// No entry starts here, and nothing tells where one might.
    fn lose(&mut self, start: u64, error: Error) -> Error {
        self.state = State::Garbage { start };
        error
    }

    fn zeros(&mut self, start: u64) -> Result<Found, Error> {
        let filled = self.input.filled();
        let zeros = filled.iter().position(|&byte| byte != 0);
        let len = zeros.unwrap_or(filled.len());
        // An entry starts with zeros itself: the last ones stay for whoever looks for it.
        let hold = if zeros.is_none() && self.finished { 0 } else { Framing::LEN - 1 };
        self.take(len.saturating_sub(hold));
        if zeros.is_some() {
            let kind = ErrorKind::BatchLength { size: 0, least: 14 };
            return Err(self.lose(start, kind.at(start + 8)));
        }
        if !self.finished {
            return Ok(Found::NeedInput);
        }
        let bytes = self.position - start;
        Ok(self.end(TailKind::ZeroPadding, start, bytes))
    }

    fn garbage(&mut self, start: u64) -> Found {
        let len = self.input.filled().len();
        self.take(len);
        if !self.finished {
            return Found::NeedInput;
        }
        let bytes = self.position - start;
        self.end(TailKind::Garbage, start, bytes)
    }
}

impl<B> Sealed for BatchReader<B> {}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Source for BatchReader<B> {
    fn next_batch(&mut self) -> Result<Found, Error> {
        self.close();
        self.next(true)
    }

    fn whole(&self) -> Option<&[u8]> {
        match self.state {
            State::Whole { size, .. } => self.input.filled().get(..size),
            _ => None,
        }
    }

    #[inline]
    fn view(&self) -> &[u8] {
        let filled = self.input.filled();
        match self.state {
            State::Whole { size, read } => filled.get(read..size).unwrap_or_default(),
            State::Passing { size, taken, .. } => {
                let left = usize::try_from(size - taken).unwrap_or(usize::MAX);
                filled.get(..left).unwrap_or(filled)
            }
            _ => &[],
        }
    }

    fn read(&self) -> u64 {
        match self.state {
            State::Whole { read, .. } => read as u64,
            State::Passing { taken, .. } => taken,
            _ => 0,
        }
    }

    #[inline]
    fn consume(&mut self, n: usize) {
        match &mut self.state {
            State::Whole { size, read } => *read = read.saturating_add(n).min(*size),
            State::Passing { size, taken, .. } => {
                *taken = taken.saturating_add(n as u64).min(*size);
                self.take(n);
            }
            _ => {}
        }
    }

    fn rewind(&mut self, to: u64) {
        if let State::Whole { read, .. } = &mut self.state {
            *read = usize::try_from(to).unwrap_or(usize::MAX).min(*read);
        }
    }

    fn dry(&self) -> Result<bool, Error> {
        match self.state {
            State::Passing { cut, .. } if self.finished => Err(cut),
            State::Passing { .. } => Ok(!self.input.is_full()),
            _ => Ok(false),
        }
    }

    fn cpu(&self) -> Cpu {
        self.cpu
    }
}
