//! The device: buffers fixed at link time, output and exit code over semihosting.

use core::fmt::Write;
use core::panic::PanicInfo;
use core::ptr;

use cortex_m_rt::{ExceptionFrame, entry, exception};
use cortex_m_semihosting::debug::{EXIT_FAILURE, EXIT_SUCCESS, exit};
use cortex_m_semihosting::hio;
use logseg_firmware::{INPUT, WINDOW, WORKSPACE, report};

/// zstd wants its memory in steps of eight bytes.
#[repr(align(8))]
struct Aligned<const LEN: usize>([u8; LEN]);

static mut BUFFERS: (Aligned<WORKSPACE>, [u8; WINDOW], [u8; INPUT]) =
    (Aligned([0; WORKSPACE]), [0; WINDOW], [0; INPUT]);

// Of the linker script.
unsafe extern "C" {
    static mut __sdata: u32;
    static mut __ebss: u32;
    static mut _stack_end: u32;
    static mut _stack_start: u32;
}

/// What `cortex-m-rt` paints the stack with before it starts the program.
const PAINT: u32 = 0xcccc_cccc;

#[entry]
fn main() -> ! {
    let buffers = &raw mut BUFFERS;
    // SAFETY: `main` runs once and nothing else names the buffers.
    let (Aligned(workspace), window, input) = unsafe { &mut *buffers };
    let mut out = hio::hstdout().expect("semihosting is on");
    report(&mut out, input, window, workspace).expect("it can be written to");
    tell_memory();
    exit(EXIT_SUCCESS);
    unreachable!("semihosting has ended the program");
}

/// On the other stream, since the host has no such line.
fn tell_memory() {
    let (low, high) = (&raw const _stack_end, &raw const _stack_start);
    let stack = high.addr() - low.addr();
    let buffers = (&raw const __ebss).addr() - (&raw const __sdata).addr();
    let mut untouched = 0;
    // SAFETY: the words from `_stack_end` up to `_stack_start` are the stack's memory.
    while untouched < stack && unsafe { ptr::read_volatile(low.byte_add(untouched)) } == PAINT {
        untouched += size_of::<u32>();
    }
    let mut err = hio::hstderr().expect("semihosting is on");
    let (ram, used) = (buffers + stack, stack - untouched);
    writeln!(err, "RAM: {ram} bytes, {buffers} of them buffers, {stack} stack ({used} used)")
        .expect("as above");
}

/// The linker wants these for parts of zstd that a static context never runs.
#[unsafe(no_mangle)]
extern "C" fn malloc(_: usize) -> *mut u8 {
    panic!("malloc");
}

#[unsafe(no_mangle)]
extern "C" fn calloc(_: usize, _: usize) -> *mut u8 {
    panic!("calloc");
}

#[unsafe(no_mangle)]
extern "C" fn free(_: *mut u8) {
    panic!("free");
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    if let Ok(mut err) = hio::hstderr() {
        let _ = writeln!(err, "{info}");
    }
    loop {
        exit(EXIT_FAILURE);
    }
}

#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    panic!("{frame:?}");
}
