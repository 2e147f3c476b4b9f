//! zstd: frames one behind the other, skippable ones among them.
//!
//! The decoder is zstd's own C code on a lent workspace; it keeps its history there
//! and not in the window. Windows of more than 128 MiB are refused, as Kafka does.

use super::{CodecError, CodecErrorKind, Decompress, Pause, Progress};
use crate::arch::zstd::{Failure, StaticDctx};
use crate::error::{Checksummed, CodecFault, Corruption, Refusal};
use crate::window::Window;

/// Largest window: 2^27 bytes.
pub const WINDOW_LOG_MAX: u32 = 27;

/// Bytes of workspace that it takes to stream frames with a window of `window`
/// bytes: about 2.6 MB for the 2 MiB of Kafka's default level 3.
#[must_use]
pub fn workspace_len(window: usize) -> usize {
    // The workspace is lent at any address; the decoder wants eight byte steps.
    crate::arch::zstd::stream_workspace_len(window).saturating_add(8)
}

/// Decoder of zstd batches.
pub struct Zstd<'w> {
    context: StaticDctx<'w>,
    /// Within a frame, or its header.
    inside: bool,
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
        Some(Self { context: StaticDctx::new(workspace, WINDOW_LOG_MAX)?, inside: false })
    }
}

impl Decompress for Zstd<'_> {
    fn reset(&mut self) {
        self.context.reset();
        self.inside = false;
    }

    fn advance(&mut self, input: &[u8], out: &mut Window<'_>) -> Result<Progress, CodecError> {
        let Self { context, inside } = self;
        let workspace = context.workspace_len();
        drive(input, out, inside, |from, to| {
            context.decompress(from, to).map_err(|failure| error_kind(failure, workspace))
        })
    }
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

fn error_kind(failure: Failure, workspace: usize) -> CodecErrorKind {
    CodecErrorKind::Fault(match failure {
        Failure::Memory => {
            // The frame's header says how much it takes, but that is gone by now.
            let need = workspace_len(1 << WINDOW_LOG_MAX) as u64;
            return CodecErrorKind::BufferTooSmall { need, have: workspace as u64 };
        }
        Failure::Window => CodecFault::Refused(Refusal::Window),
        Failure::Dictionary => CodecFault::Refused(Refusal::Dictionary),
        Failure::Format => CodecFault::Corrupt(Corruption::NotThisFormat),
        Failure::Checksum => {
            CodecFault::Checksum { of: Checksummed::Content, stored: 0, computed: 0 }
        }
        Failure::Data => CodecFault::Corrupt(Corruption::Data),
    })
}
