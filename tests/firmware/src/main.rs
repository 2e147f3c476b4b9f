//! The program, for a Cortex-M4F and for the host.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod bare;

/// Prints the lines of the device, then checks that large buffers, and the slice source,
/// tell the same of each segment.
#[cfg(not(target_os = "none"))]
fn main() -> std::process::ExitCode {
    use logseg_core::{Batches, Builtin, Cpu};
    use logseg_firmware::{INPUT, WINDOW, WORKSPACE, read, report, segments, stream};

    let (mut input, mut window) = (vec![0; INPUT], vec![0; WINDOW]);
    let mut workspace = vec![0; WORKSPACE];
    let mut lines = String::new();
    report(&mut lines, &mut input, &mut window, &mut workspace).expect("a String takes it all");
    print!("{lines}");

    let (mut large_input, mut large_window) = (vec![0; 1 << 20], vec![0; 32 << 20]);
    let mut large_workspace = vec![0; 18 << 20];
    let mut small_codecs = Builtin::new().with_zstd(&mut workspace);
    let mut large_codecs = Builtin::new().with_zstd(&mut large_workspace);
    let mut faults = 0;
    for (name, segment) in segments::all() {
        let small = stream(segment, &mut input, &mut small_codecs, &mut window);
        let mut source = Batches::new(segment, Cpu::detect());
        let slice = read(&mut source, &mut large_codecs, &mut large_window, |_| {
            unreachable!("all of it is there");
        });
        let large = stream(segment, &mut large_input, &mut large_codecs, &mut large_window);
        for (how, other) in [("slice", slice), ("large buffers", large)] {
            // What does not fit the device's memory is read here.
            let same = if small.too_small > 0 {
                small.batches == other.batches && small.failed - small.too_small == other.failed
            } else {
                small.batches == other.batches
                    && small.failed == other.failed
                    && small.fault == other.fault
                    && small.records == other.records
                    && small.digest == other.digest
            };
            if !same || small.tail != other.tail || other.rebased + other.pieced > 0 {
                eprintln!("{name}: {how}: {other}, but small buffers: {small}");
                faults += 1;
            }
        }
    }
    eprintln!("{faults} differences to large buffers");
    std::process::ExitCode::from(u8::from(faults > 0))
}
