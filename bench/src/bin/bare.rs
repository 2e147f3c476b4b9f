//! What `std-host analyze` cannot do without: `bare FILE` runs the bare library calls
//! on every batch of a segment and prints the four sizes. To be timed against
//! `std-host analyze --threads 1 FILE`, which prints the same sizes.

use std::fs::File;
use std::io::{BufReader, Read};

use logseg_bench::Bare;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: bare FILE")?;
    let mut input = BufReader::with_capacity(256 << 10, File::open(path)?);
    let (mut bare, mut batch, mut sums) = (Bare::default(), Vec::new(), [0u64; 4]);
    let mut prefix = [0u8; 12];
    while input.read_exact(&mut prefix).is_ok() {
        batch.clear();
        batch.extend_from_slice(&prefix);
        let size = u32::from_be_bytes(prefix[8..].try_into()?);
        (&mut input).take(size.into()).read_to_end(&mut batch)?;
        for (sum, size) in sums.iter_mut().zip(bare.run(&batch)) {
            *sum += size;
        }
    }
    for (codec, sum) in ["gzip", "snappy", "lz4", "zstd"].iter().zip(sums) {
        println!("{codec} {sum}");
    }
    Ok(())
}
