import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import org.apache.bookkeeper.mledger.MetadataCompressionConfig;
import org.apache.bookkeeper.mledger.impl.MetaStoreImpl;
import org.apache.bookkeeper.mledger.proto.MLDataFormats.ManagedCursorInfo;
import org.apache.bookkeeper.mledger.proto.MLDataFormats.ManagedLedgerInfo;
import org.apache.bookkeeper.mledger.proto.MLDataFormats.MessageRange;
import org.apache.bookkeeper.mledger.proto.MLDataFormats.NestedPositionInfo;

/**
 * Metadata nodes by Pulsar's own MetaStoreImpl. "write DIR" puts N.plain, the message, and
 * N.CODEC, the node as Pulsar stores it, into DIR; N starts with the kind. "read DIR" reads
 * N.CODEC.ours, which must be the same message.
 */
public class Nodes {
    private static final String[] CODECS = {"NONE", "LZ4", "ZLIB", "ZSTD", "SNAPPY"};
    private static final int EACH = 40;

    public static void main(String[] args) throws Exception {
        Path dir = Path.of(args[1]);
        int n = args[0].equals("write") ? write(dir) : read(dir);
        System.out.println(n + " nodes " + (args[0].equals("write") ? "written" : "read") + " by Pulsar");
    }

    private static MetaStoreImpl store(String codec) {
        var config = new MetadataCompressionConfig(codec, 0);
        return new MetaStoreImpl(null, null, config, config);
    }

    private static int write(Path dir) throws IOException {
        var random = new Random(640);
        int n = 0;
        for (int i = 0; i < EACH; i++) {
            var cursor = cursor(random, i * i * 3);
            var ledger = ledger(random, i * 5);
            Files.write(dir.resolve("cursor" + i + ".plain"), cursor.toByteArray());
            Files.write(dir.resolve("ledger" + i + ".plain"), ledger.toByteArray());
            for (String codec : CODECS) {
                var store = store(codec);
                Files.write(dir.resolve("cursor" + i + "." + codec), store.compressCursorInfo(cursor));
                Files.write(dir.resolve("ledger" + i + "." + codec), store.compressLedgerInfo(ledger));
                n += 2;
            }
        }
        return n;
    }

    private static int read(Path dir) throws Exception {
        int n = 0;
        for (int i = 0; i < EACH; i++) {
            for (String codec : CODECS) {
                for (String kind : new String[] {"cursor", "ledger"}) {
                    byte[] node = Files.readAllBytes(dir.resolve(kind + i + "." + codec + ".ours"));
                    byte[] plain = Files.readAllBytes(dir.resolve(kind + i + ".plain"));
                    byte[] got = kind.equals("cursor")
                            ? store(codec).parseManagedCursorInfo(node).toByteArray()
                            : store(codec).parseManagedLedgerInfo(node).toByteArray();
                    if (!Arrays.equals(got, plain)) {
                        throw new UncheckedIOException(new IOException(kind + i + "." + codec + " differs"));
                    }
                    n++;
                }
            }
        }
        return n;
    }

    private static NestedPositionInfo position(long ledger, long entry) {
        return NestedPositionInfo.newBuilder().setLedgerId(ledger).setEntryId(entry).build();
    }

    private static ManagedCursorInfo cursor(Random random, int ranges) {
        long ledger = random.nextInt(1 << 20);
        long entry = 0;
        var cursor = ManagedCursorInfo.newBuilder()
                .setCursorsLedgerId(ranges % 2 == 0 ? -1 : ledger + 1)
                .setMarkDeleteLedgerId(ledger).setMarkDeleteEntryId(-1).setLastActive(random.nextLong());
        for (int i = 0; i < ranges; i++) {
            long to = entry + 1 + random.nextInt(9);
            cursor.addIndividualDeletedMessages(MessageRange.newBuilder()
                    .setLowerEndpoint(position(ledger, entry)).setUpperEndpoint(position(ledger, to)));
            entry = to + 1 + random.nextInt(5);
        }
        return cursor.build();
    }

    private static ManagedLedgerInfo ledger(Random random, int ledgers) {
        var info = ManagedLedgerInfo.newBuilder();
        for (int i = 0; i < ledgers; i++) {
            info.addLedgerInfo(ManagedLedgerInfo.LedgerInfo.newBuilder().setLedgerId(i * 7L)
                    .setEntries(random.nextInt(1 << 20)).setSize(random.nextInt(1 << 30)).setTimestamp(i));
        }
        return info.build();
    }
}
