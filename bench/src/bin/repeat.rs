//! Makes a large segment from a small one: `repeat IN OUT BYTES` repeats its batches,
//! with offsets that go on, until OUT has at least BYTES.
//!
//! Offsets lie outside of a v2 batch's checksum, so nothing else has to change.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use logseg_bench::batches;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, bytes] = args.as_slice() else {
        return Err("usage: repeat IN OUT BYTES".into());
    };
    let bytes: u64 = bytes.parse()?;
    let mut batches = batches(Path::new(from));
    let mut out = BufWriter::with_capacity(1 << 20, File::create_new(to)?);
    let (mut offset, mut written) = (0i64, 0u64);
    while written < bytes {
        for batch in &mut batches {
            batch[..8].copy_from_slice(&offset.to_be_bytes());
            let delta = i32::from_be_bytes(batch[23..27].try_into()?);
            offset += i64::from(delta) + 1;
            out.write_all(batch)?;
            written += batch.len() as u64;
            if written >= bytes {
                break;
            }
        }
    }
    out.flush()?;
    println!("{written} bytes, offsets 0 to {}", offset - 1);
    Ok(())
}
