//! The hot loops for an instruction counter, which other work on the machine does not
//! disturb: `hot LOOP MIX` goes over 256 KiB of records once, inside of `counted`, and
//! prints how many records that were. `bench/README.md` has the command for valgrind.

use logseg_bench::building;
use logseg_bench::prefix::{Way, backends, mix};
use logseg_bench::segment::{Mix, Segment, folded, records_unchecked, slice_unchecked};
use logseg_core::codec::BuiltinCompressors;
use logseg_core::{Builtin, Codec};

/// What the counter is told to look at.
#[inline(never)]
fn counted<T>(run: impl FnOnce() -> T) -> T {
    run()
}

/// The segment's batches built anew, by core or by `kafka-protocol`.
fn built(name: &str, segment: &Segment) -> Option<u64> {
    let batches = building::batches(&segment.bytes);
    let (mut none, mut memory) = (BuiltinCompressors::new(), vec![0; 256 << 10]);
    let mut one = |batch: &building::Batch| match name {
        "build" => building::build(batch, Codec::None, &mut none, &mut memory).len(),
        _ => building::encode(batch, None).len(),
    };
    if !["build", "encode"].contains(&name) {
        return None;
    }
    let bytes: usize = counted(|| batches.iter().map(&mut one).sum());
    assert!(bytes > 0);
    Some(batches.iter().map(|batch| batch.len() as u64).sum())
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, of] = args.as_slice() else { panic!("usage: hot LOOP MIX") };
    if let Some((_, sums)) = backends().iter().find(|(backend, _)| backend == name) {
        let section = mix(of);
        println!("{}", counted(|| sums(&section, Way::Chained))[0]);
        return;
    }
    let mix = Mix::ALL.into_iter().find(|mix| mix.name() == of).expect("small, mid or headers");
    let segment = Segment::grouped(mix, Codec::None, mix.batch(), 256 << 10);
    if let Some(records) = built(name, &segment) {
        assert_eq!(records, segment.records);
        println!("{records}");
        return;
    }
    let (mut builtin, mut window) = (Builtin::new(), vec![0; 64 << 10]);
    let seen = match name.as_str() {
        "next" => counted(|| records_unchecked(&segment.bytes)),
        "fold" => counted(|| folded(&segment.bytes)),
        "unpacker" => counted(|| slice_unchecked(&segment.bytes, &mut builtin, &mut window)),
        _ => panic!("LOOP is next, fold, unpacker, build, encode or a backend of `prefix`"),
    };
    assert_eq!(seen.records, segment.records);
    println!("{}", seen.records);
}
