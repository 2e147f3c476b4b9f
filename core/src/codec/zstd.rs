//! zstd: frames one behind the other, skippable ones among them.
//!
//! The decoder is zstd's own C code on a lent workspace; it keeps its history there
//! and not in the window. Windows of more than 128 MiB are refused, as Kafka does.

use super::held::Held;
use super::{CodecError, CodecErrorKind, Decompress, Pause, Progress};
use crate::arch::zstd::{self as arch, Failure, StaticDctx};
use crate::error::{Checksummed, CodecFault, Corruption, Refusal};
use crate::window::Window;

/// Largest window: 2^27 bytes.
pub const WINDOW_LOG_MAX: u32 = 27;

/// Longest header of a frame.
const HEADER_MAX: usize = 18;

/// Bytes of workspace that it takes to stream frames with a window of `window`
/// bytes: about 2.6 MB for the 2 MiB of Kafka's default level 3.
#[must_use]
pub fn workspace_len(window: usize) -> usize {
    // The workspace is lent at any address; the decoder wants eight byte steps.
    arch::stream_workspace_len(window).saturating_add(8)
}

/// Decoder of zstd batches.
pub struct Zstd<'w> {
    context: StaticDctx<'w>,
    /// Within a frame, or its header.
    inside: bool,
    /// Header of the present frame, as far as it is there: if the workspace is too small,
    /// it says how much is needed.
    header: Held<HEADER_MAX>,
}

impl core::fmt::Debug for Zstd<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Zstd").field("inside", &self.inside).finish_non_exhaustive()
    }
}

impl<'w> Zstd<'w> {
    /// `None` if the workspace is too small for any frame.
    #[must_use]
    pub fn new(workspace: &'w mut [u8]) -> Option<Self> {
        let context = StaticDctx::new(workspace, WINDOW_LOG_MAX)?;
        Some(Self { context, inside: false, header: Held::new() })
    }
}

impl Decompress for Zstd<'_> {
    fn reset(&mut self) {
        self.context.reset();
        self.inside = false;
        self.header.clear();
    }

    fn advance(&mut self, input: &[u8], out: &mut Window<'_>) -> Result<Progress, CodecError> {
        let Self { context, inside, header } = self;
        drive(input, out, inside, |from, to| {
            header.fill(from, &mut 0, HEADER_MAX);
            let step = context.decompress(from, to);
            if matches!(step, Ok((.., 0))) {
                header.clear();
            }
            step.map_err(|failure| match failure {
                Failure::Memory => CodecErrorKind::BufferTooSmall {
                    need: frame_need(header.bytes()),
                    have: context.workspace_len() as u64,
                },
                other => CodecErrorKind::Fault(fault(other)),
            })
        })
    }
}

/// What a frame needs, by its header.
fn frame_need(header: &[u8]) -> u64 {
    let largest = || workspace_len(1 << WINDOW_LOG_MAX);
    arch::frame_workspace_len(header).map_or_else(largest, |len| len.saturating_add(8)) as u64
}

/// Drives a streaming zstd decoder, whose memory may be anywhere.
///
/// `step` decodes from the first slice into the second and gives the bytes consumed,
/// the bytes produced, and zstd's hint, which is 0 where a frame is complete and all
/// of it flushed. `inside` says, from one call to the next, that a frame is not.
pub fn drive(
    input: &[u8],
    out: &mut Window<'_>,
    inside: &mut bool,
    mut step: impl FnMut(&[u8], &mut [u8]) -> Result<(usize, usize, usize), CodecErrorKind>,
) -> Result<Progress, CodecError> {
    let mut at = 0;
    loop {
        if input.is_empty() && !*inside {
            // No byte at all decodes to nothing.
            return Ok(Progress { consumed: at, pause: Pause::Finished });
        }
        let rest = input.get(at..).unwrap_or_default();
        let room = out.spare_len();
        let (consumed, produced, hint) =
            step(rest, out.spare()).map_err(|kind| CodecError { kind, at })?;
        out.commit(produced);
        at += consumed;
        *inside = hint != 0;
        if produced == room && *inside {
            return Ok(Progress { consumed: at, pause: Pause::WindowFull });
        }
        let moved = consumed > 0 || produced > 0;
        if input.is_empty() {
            if *inside && !moved {
                return Err(CodecError::truncated(at));
            }
        } else if at == input.len() || !moved {
            return Ok(Progress { consumed: at, pause: Pause::InputDry });
        }
    }
}

fn fault(failure: Failure) -> CodecFault {
    match failure {
        Failure::Window => CodecFault::Refused(Refusal::Window),
        Failure::Dictionary => CodecFault::Refused(Refusal::Dictionary),
        Failure::Format => CodecFault::Corrupt(Corruption::NotThisFormat),
        Failure::Checksum => {
            CodecFault::Checksum { of: Checksummed::Content, stored: 0, computed: 0 }
        }
        Failure::Memory | Failure::Data => CodecFault::Corrupt(Corruption::Data),
    }
}
