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

    fn error(&self, failure: Failure, at: usize) -> CodecError {
        let fault = match failure {
            Failure::Memory => {
                return CodecError {
                    kind: CodecErrorKind::BufferTooSmall {
                        // The header of the frame says how much it takes; it is gone.
                        need: workspace_len(1 << WINDOW_LOG_MAX) as u64,
                        have: self.context.workspace_len() as u64,
                    },
                    at,
                };
            }
            Failure::Window => CodecFault::Refused(Refusal::Window),
            Failure::Dictionary => CodecFault::Refused(Refusal::Dictionary),
            Failure::Format => CodecFault::Corrupt(Corruption::NotThisFormat),
            Failure::Checksum => {
                CodecFault::Checksum { of: Checksummed::Content, stored: 0, computed: 0 }
            }
            Failure::Data => CodecFault::Corrupt(Corruption::Data),
        };
        CodecError::fault(fault, at)
    }
}

impl Decompress for Zstd<'_> {
    fn reset(&mut self) {
        self.context.reset();
        self.inside = false;
    }

    fn advance(&mut self, input: &[u8], out: &mut Window<'_>) -> Result<Progress, CodecError> {
        if input.is_empty() && !self.inside {
            // No byte at all decodes to nothing.
            return Ok(Progress { consumed: 0, pause: Pause::Finished });
        }
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            let before = out.spare_len();
            let (consumed, produced, hint) = self
                .context
                .decompress(rest, out.spare())
                .map_err(|failure| self.error(failure, at))?;
            out.commit(produced);
            at += consumed;
            // 0: a frame is complete, and all of it flushed.
            self.inside = hint != 0;
            let pause = if produced == before && self.inside {
                Pause::WindowFull
            } else if at < input.len() && (consumed > 0 || produced > 0) {
                continue;
            } else if !input.is_empty() {
                Pause::InputDry
            } else if !self.inside {
                Pause::Finished
            } else if produced > 0 {
                continue;
            } else {
                return Err(CodecError::truncated(at));
            };
            return Ok(Progress { consumed: at, pause });
        }
    }
}
