//! Decoders of record prefixes, on records of the corpus.

use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use logseg_bench::prefix::{MIXES, Way, backends, mix};

fn prefixes(criterion: &mut Criterion) {
    for name in MIXES {
        let section = mix(name);
        let want = backends()[0].1(&section, Way::Chained);
        for (backend, sums) in backends() {
            assert_eq!(sums(&section, Way::Chained), want, "{backend}, {name}");
            let mut group = criterion.benchmark_group(format!("prefix/{backend}"));
            group.throughput(Throughput::Elements(want[0].unsigned_abs())).sample_size(10);
            group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
            group.bench_function(name, |b| b.iter(|| sums(&section, Way::Chained)));
            group.finish();
        }
    }
}

criterion_group!(benches, prefixes);
criterion_main!(benches);
