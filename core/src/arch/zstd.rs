//! zstd's C decoder on a lent workspace.

use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use zstd_sys::{
    ZSTD_DCtx, ZSTD_DCtx_reset, ZSTD_DCtx_setParameter, ZSTD_ErrorCode, ZSTD_ResetDirective,
    ZSTD_dParameter, ZSTD_decompressStream, ZSTD_estimateDStreamSize,
    ZSTD_estimateDStreamSize_fromFrame, ZSTD_getErrorCode, ZSTD_inBuffer, ZSTD_initStaticDCtx,
    ZSTD_isError, ZSTD_outBuffer,
};

/// What zstd says is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The workspace is too small for this frame.
    Memory,
    Window,
    Dictionary,
    Format,
    Checksum,
    Data,
}

/// Bytes of an aligned workspace for streaming with a window of this size.
pub(crate) fn stream_workspace_len(window: usize) -> usize {
    // SAFETY: a pure function of its argument.
    unsafe { ZSTD_estimateDStreamSize(window) }
}

/// The same for the frame whose header this is.
pub(crate) fn frame_workspace_len(header: &[u8]) -> Option<usize> {
    // SAFETY: zstd reads no more than the given length; it keeps no pointer.
    let len = unsafe { ZSTD_estimateDStreamSize_fromFrame(header.as_ptr().cast(), header.len()) };
    // SAFETY: a pure function of its argument.
    if unsafe { ZSTD_isError(len) } == 0 { Some(len) } else { None }
}

/// A decompression context that lives in borrowed memory and allocates nothing.
pub(crate) struct StaticDctx<'w> {
    context: NonNull<ZSTD_DCtx>,
    len: usize,
    workspace: PhantomData<&'w mut [u8]>,
}

// SAFETY: the context is plain memory that this value borrows exclusively; the C
// code keeps no thread-local or global state for it.
unsafe impl Send for StaticDctx<'_> {}

impl<'w> StaticDctx<'w> {
    /// `None` if the workspace cannot even hold a context.
    pub(crate) fn new(workspace: &'w mut [u8], window_log_max: u32) -> Option<Self> {
        let skip = workspace.as_ptr().align_offset(8);
        let aligned = workspace.get_mut(skip..)?;
        let len = aligned.len();
        // SAFETY: the workspace is valid for reads and writes of its length for 'w,
        // is aligned to 8 as zstd demands, and nobody else can touch it meanwhile.
        let context = unsafe { ZSTD_initStaticDCtx(aligned.as_mut_ptr().cast(), len) };
        let context = NonNull::new(context)?;
        let this = Self { context, len, workspace: PhantomData };
        let log = i32::try_from(window_log_max).ok()?;
        // SAFETY: the context was just initialised.
        let code = unsafe {
            ZSTD_DCtx_setParameter(this.context.as_ptr(), ZSTD_dParameter::ZSTD_d_windowLogMax, log)
        };
        // SAFETY: a pure function of its argument.
        if unsafe { ZSTD_isError(code) } != 0 { None } else { Some(this) }
    }

    pub(crate) const fn workspace_len(&self) -> usize {
        self.len
    }

    /// Forgets the stream, keeps the parameters.
    pub(crate) fn reset(&mut self) {
        // SAFETY: the context is initialised and exclusively ours. Resetting the
        // session alone cannot fail.
        unsafe {
            ZSTD_DCtx_reset(self.context.as_ptr(), ZSTD_ResetDirective::ZSTD_reset_session_only);
        }
    }

    /// One step: bytes consumed, bytes produced, and zstd's hint (0 where a frame
    /// is complete).
    pub(crate) fn decompress(
        &mut self,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(usize, usize, usize), Failure> {
        let mut from = ZSTD_inBuffer { src: input.as_ptr().cast(), size: input.len(), pos: 0 };
        if input.is_empty() {
            from.src = ptr::null();
        }
        let mut to = ZSTD_outBuffer { dst: output.as_mut_ptr().cast(), size: output.len(), pos: 0 };
        // SAFETY: the context is initialised and exclusively ours; both buffers are
        // valid for their lengths during the call, and zstd writes only to `output`.
        let code =
            unsafe { ZSTD_decompressStream(self.context.as_ptr(), &raw mut to, &raw mut from) };
        // SAFETY: pure functions of their argument.
        if unsafe { ZSTD_isError(code) } == 0 {
            return Ok((from.pos, to.pos, code));
        }
        // SAFETY: as above.
        Err(match unsafe { ZSTD_getErrorCode(code) } {
            ZSTD_ErrorCode::ZSTD_error_memory_allocation => Failure::Memory,
            ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge => Failure::Window,
            ZSTD_ErrorCode::ZSTD_error_dictionary_wrong
            | ZSTD_ErrorCode::ZSTD_error_dictionary_corrupted => Failure::Dictionary,
            ZSTD_ErrorCode::ZSTD_error_prefix_unknown
            | ZSTD_ErrorCode::ZSTD_error_version_unsupported => Failure::Format,
            ZSTD_ErrorCode::ZSTD_error_checksum_wrong => Failure::Checksum,
            _ => Failure::Data,
        })
    }
}
