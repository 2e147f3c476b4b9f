//! Reads a segment that is in memory: `slice SEGMENT`.
//!
//! Nothing is copied and nothing is allocated. Compressed batches need an unpacker, as
//! `stream.rs` has; here they are counted.

use std::error::Error;

use logseg_core::{Batches, Cpu, ErrorKind};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: slice SEGMENT")?;
    let segment = std::fs::read(path)?;
    let (mut batches, mut compressed, mut records, mut bytes) = (0, 0, 0, 0);
    for batch in Batches::new(&segment, Cpu::detect()) {
        let batch = batch?;
        batches += 1;
        match batch.records() {
            Ok(all) => {
                for record in all {
                    bytes += record?.value.map_or(0, <[u8]>::len);
                    records += 1;
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::Compressed { .. }) => compressed += 1,
            Err(error) => return Err(error.into()),
        }
    }
    println!(
        "{batches} batches, {compressed} of them compressed; \
         the others hold {records} records with {bytes} bytes of values"
    );
    Ok(())
}
