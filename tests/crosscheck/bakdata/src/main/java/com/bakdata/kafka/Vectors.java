package com.bakdata.kafka;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Supplier;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * Records by bakdata's own clients, with a map for a store. "write FILE" writes them to FILE,
 * "read FILE" reads records that another wrote, and says of each whether the value is right.
 *
 * <p>A line is a record: name, topic, "key" or "value", header or flag, its plain bytes, its
 * bytes, its headers as NAME=BYTES with commas between, URI and bytes of the blob; "-" is none,
 * and bytes are Base64. It is in their package since some of the constructors are not public.
 */
public class Vectors {
    private static final String[] SCHEMES = {"s3", "abs", "gs"};

    public static void main(String[] args) throws Exception {
        Path file = Path.of(args[1]);
        if (args[0].equals("write")) {
            Files.write(file, write());
        } else {
            read(file);
        }
    }

    /** The store, and how the last blob was called. */
    private static class Store implements BlobStorageClient {
        private final String scheme;
        private final Map<String, byte[]> blobs = new HashMap<>();
        private String last = "-";

        Store(String scheme) {
            this.scheme = scheme;
        }

        @Override
        public void deleteAllObjects(String bucket, String prefix) {
            throw new UnsupportedOperationException();
        }

        @Override
        public String putObject(byte[] bytes, String bucket, String key) {
            // As each of its clients makes it.
            last = scheme + "://" + bucket + "/" + key;
            blobs.put(last, bytes);
            return last;
        }

        @Override
        public byte[] getObject(String bucket, String key) {
            return blobs.get(scheme + "://" + bucket + "/" + key);
        }

        @Override
        public void close() {
        }
    }

    private static LargeMessageRetrievingClient reader(Store store) {
        Map<String, Supplier<BlobStorageClient>> factories = new HashMap<>();
        factories.put(store.scheme, () -> store);
        return new LargeMessageRetrievingClient(factories, false);
    }

    private static List<String> write() {
        var random = new Random(1159);
        var noise = new byte[300];
        random.nextBytes(noise);
        Map<String, byte[]> plains = Map.of(
                "empty", new byte[0],
                "below", Arrays.copyOf("ninety-nine bytes: ".repeat(6).getBytes(), 99),
                "threshold", Arrays.copyOf("a hundred bytes: ".repeat(6).getBytes(), 100),
                "zeros", new byte[300],
                "noise", noise);
        List<String> lines = new ArrayList<>();
        int n = 0;
        for (String plain : List.of("empty", "below", "threshold", "zeros", "noise")) {
            for (boolean headers : new boolean[] {false, true}) {
                for (CompressionType type : CompressionType.values()) {
                    byte[] bytes = plains.get(plain);
                    boolean backed = bytes.length >= 100;
                    // Inline they are all the same.
                    if (type != CompressionType.NONE && (!headers || !backed)) {
                        continue;
                    }
                    for (boolean isKey : new boolean[] {false, true}) {
                        String scheme = SCHEMES[n % SCHEMES.length];
                        String base = scheme + "://bucket" + new String[] {"", "/", "/pre/fix/", "/glued"}[n % 4];
                        IdGenerator ids = List.of(new Sha256HashIdGenerator(), new MurmurHashIdGenerator(),
                                new RandomUUIDGenerator()).get(n % 5 % 3);
                        n++;
                        var store = new Store(scheme);
                        var written = new RecordHeaders();
                        byte[] record = LargeMessageStoringClient.builder()
                                .client(store).basePath(BlobStorageURI.create(base)).maxSize(100)
                                .idGenerator(ids).compressionType(type)
                                .protocol(headers ? new HeaderLargeMessagePayloadProtocol()
                                        : new ByteFlagLargeMessagePayloadProtocol())
                                .build().storeBytes("topic.1", bytes, isKey, written);
                        String name = String.join("-", plain, headers ? "header" : "flag", type.getName(),
                                isKey ? "key" : "value", ids.getClass().getSimpleName(),
                                readsBack(store, record, written, isKey, bytes) ? "read" : "unreadable");
                        byte[] blob = store.blobs.get(store.last);
                        lines.add(String.join("\t", name, base, "topic.1", isKey ? "key" : "value",
                                text(bytes), text(record), text(written), store.last,
                                blob == null ? "-" : text(blob)));
                    }
                }
            }
        }
        // Hashes of every length of the last block.
        for (int len = 0; len <= 48; len++) {
            byte[] bytes = Arrays.copyOf(noise, len);
            lines.add("murmur\t" + text(bytes) + "\t" + new MurmurHashIdGenerator().generateId(bytes));
        }
        for (String base : List.of("s3://bucket", "s3://12345", "s3://my.bucket", "s3://my.bucket.1",
                "s3://my-bucket", "s3://under_score", "s3://1.2.3.4", "s3://a-", "s3://-a", "s3://a..b",
                "s3://A.b", "s3://a.1b", "s3://bucket:80/x")) {
            lines.add("bucket\t" + base + "\t" + (URI.create(base).getHost() == null ? "none" : "read"));
        }
        return lines;
    }

    /** Not every blob that it writes can be read by it. */
    private static boolean readsBack(Store store, byte[] record, Headers headers, boolean isKey, byte[] plain) {
        try {
            return Arrays.equals(plain, reader(store).retrieveBytes(record, headers, isKey));
        } catch (RuntimeException e) {
            return false;
        }
    }

    private static void read(Path file) throws IOException {
        int n = 0;
        for (String line : Files.readAllLines(file)) {
            String[] fields = line.split("\t", -1);
            String uri = fields[7];
            var store = new Store(uri.equals("-") ? "s3" : URI.create(uri).getScheme());
            if (!uri.equals("-")) {
                store.blobs.put(uri, bytes(fields[8]));
            }
            var headers = new RecordHeaders();
            if (!fields[6].equals("-")) {
                for (String header : fields[6].split(",")) {
                    int at = header.indexOf('=');
                    headers.add(header.substring(0, at), bytes(header.substring(at + 1)));
                }
            }
            byte[] plain = reader(store).retrieveBytes(bytes(fields[5]), headers, fields[3].equals("key"));
            if (!Arrays.equals(plain, bytes(fields[4]))) {
                throw new AssertionError(fields[0] + " is another value");
            }
            n++;
        }
        System.out.println(n + " records read by bakdata's client");
    }

    private static String text(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    private static byte[] bytes(String text) {
        return Base64.getDecoder().decode(text);
    }

    private static String text(Headers headers) {
        List<String> all = new ArrayList<>();
        for (Header header : headers) {
            all.add(header.key() + "=" + text(header.value()));
        }
        return all.isEmpty() ? "-" : String.join(",", all);
    }
}
