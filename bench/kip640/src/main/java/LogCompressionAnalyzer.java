import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.AppInfoParser;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

/**
 * What each compression type would make of a log segment, as KIP-640 proposes, with
 * Kafka's own classes on one thread. Every batch is read once; its records are then
 * appended to a builder of each type at its default level. A codec's time is that of
 * making the builder, appending the records and closing it: Kafka has no way to
 * compress that goes without.
 *
 * <p>Takes the segment several times in one JVM, so that both the first pass and those
 * of compiled code are known.
 */
public final class LogCompressionAnalyzer {
    private static final CompressionType[] TYPES = {
        CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD
    };

    /** One pass over the segment. */
    private static final class Pass {
        long wall;
        long batches;
        long records;
        long original;
        long uncompressed;
        final long[] compressed = new long[TYPES.length];
        final long[] nanos = new long[TYPES.length];
    }

    private final Compression[] compressions = new Compression[TYPES.length];
    /** Kept for all batches, as a consumer keeps its own. */
    private final BufferSupplier buffers = BufferSupplier.create();
    private final List<Record> records = new ArrayList<>();
    private ByteBuffer out = ByteBuffer.allocate(1 << 20);

    private LogCompressionAnalyzer() {
        for (int i = 0; i < TYPES.length; i++) {
            compressions[i] = Compression.of(TYPES[i]).build();
        }
    }

    private Pass pass(File segment) throws IOException {
        Pass pass = new Pass();
        long start = System.nanoTime();
        try (FileRecords log = FileRecords.open(segment, false)) {
            for (RecordBatch batch : log.batches()) {
                measure(batch, pass);
            }
        }
        pass.wall = System.nanoTime() - start;
        return pass;
    }

    private void measure(RecordBatch batch, Pass pass) {
        batch.ensureValid();
        records.clear();
        int plain = batch.magic() == RecordBatch.MAGIC_VALUE_V2
            ? DefaultRecordBatch.RECORD_BATCH_OVERHEAD : 0;
        try (CloseableIterator<Record> iterator = batch.streamingIterator(buffers)) {
            while (iterator.hasNext()) {
                Record record = iterator.next();
                plain += record.sizeInBytes();
                records.add(record);
            }
        }
        // Never compressed by a producer.
        boolean asItIs = batch.isControlBatch() || records.isEmpty();
        int size = batch.sizeInBytes();
        pass.batches++;
        pass.records += records.size();
        pass.original += size;
        pass.uncompressed += asItIs ? size : plain;
        if (!asItIs && out.capacity() < plain + plain / 4) {
            // So that the builders never have to grow it.
            out = ByteBuffer.allocate(plain + plain / 4);
        }
        for (int i = 0; i < TYPES.length; i++) {
            if (asItIs) {
                pass.compressed[i] += size;
            } else if (TYPES[i] == CompressionType.ZSTD
                    && batch.magic() < RecordBatch.MAGIC_VALUE_V2) {
                pass.compressed[i] += plain;
            } else {
                long start = System.nanoTime();
                int length = compress(batch, compressions[i]);
                pass.nanos[i] += System.nanoTime() - start;
                pass.compressed[i] += length;
            }
        }
    }

    private int compress(RecordBatch batch, Compression compression) {
        out.clear();
        try (MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
                out, batch.magic(), compression, batch.timestampType(),
                records.get(0).offset(), batch.maxTimestamp(), batch.producerId(),
                batch.producerEpoch(), batch.baseSequence(), batch.isTransactional(), false,
                batch.partitionLeaderEpoch(), out.capacity())) {
            for (Record record : records) {
                builder.append(record);
            }
            return builder.build().sizeInBytes();
        }
    }

    private static double mibPerSecond(long bytes, long nanos) {
        return nanos == 0 ? 0 : bytes / 1048576.0 / (nanos / 1e9);
    }

    private static void table(String title, Pass pass) {
        System.out.printf(Locale.ROOT, "%s: %.3f s%n%-16s  %15s  %13s  %11s  %10s  %13s%n", title,
            pass.wall / 1e9, "COMPRESSION-TYPE", "COMPRESSED-SIZE", "SPACE-SAVINGS",
            "TOTAL-RATIO", "TOTAL-TIME", "SPEED");
        for (int i = 0; i < TYPES.length; i++) {
            System.out.printf(Locale.ROOT, "%-16s  %15d  %12.2f%%  %11.2f  %8dms  %8.2f MB/s%n",
                TYPES[i].name, pass.compressed[i],
                100 * (1 - (double) pass.compressed[i] / pass.uncompressed),
                (double) pass.uncompressed / pass.compressed[i], pass.nanos[i] / 1_000_000,
                mibPerSecond(pass.uncompressed, pass.nanos[i]));
        }
    }

    private static String json(Pass pass) {
        StringBuilder json = new StringBuilder();
        json.append(String.format("{\"kafka\":\"%s\",\"java\":\"%s\",\"batches\":%d,"
            + "\"records\":%d,\"original_bytes\":%d,\"uncompressed_bytes\":%d,\"wall_ns\":%d,"
            + "\"codecs\":{", AppInfoParser.getVersion(), Runtime.version(), pass.batches,
            pass.records, pass.original, pass.uncompressed, pass.wall));
        for (int i = 0; i < TYPES.length; i++) {
            json.append(String.format("%s\"%s\":{\"bytes\":%d,\"ns\":%d}", i == 0 ? "" : ",",
                TYPES[i].name, pass.compressed[i], pass.nanos[i]));
        }
        return json.append("}}").toString();
    }

    public static void main(String[] args) throws IOException {
        if (args.length != 2) {
            System.err.println("usage: LogCompressionAnalyzer SEGMENT PASSES|-");
            System.exit(2);
        }
        File segment = new File(args[0]);
        LogCompressionAnalyzer analyzer = new LogCompressionAnalyzer();
        if (args[1].equals("-")) {
            // A pass whenever it is asked for, so that others can run in between.
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
            while (lines.readLine() != null) {
                System.out.println(json(analyzer.pass(segment)));
            }
            return;
        }
        List<Pass> passes = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            passes.add(analyzer.pass(segment));
        }
        Pass first = passes.get(0);
        System.out.printf("Analyzing %s%nOriginal log size: %d bytes%nUncompressed log size: %d"
            + " bytes%nBatches: %d%nRecords: %d%n%n", segment, first.original, first.uncompressed,
            first.batches, first.records);
        table("First pass", first);
        Pass best = passes.stream().min(Comparator.comparingLong(pass -> pass.wall)).orElse(first);
        table("Best of " + passes.size() + " passes", best);
    }
}
