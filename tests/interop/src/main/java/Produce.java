import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.internals.AppInfoParser;

/**
 * Everything that Kafka's own producer can make of a log. The topics' names begin with
 * `java`; those that begin with `java-same` have the same records in the same batches, each
 * compressed with what its name tells.
 */
public final class Produce {
    private static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    private static final String[] SAME = {"none", "gzip", "gzip:1", "gzip:9", "snappy", "lz4",
        "lz4:4", "lz4:17", "zstd", "zstd:-5", "zstd:1", "zstd:12", "zstd:19"};
    private static final long START = 1_700_000_000_000L;
    /** Later than the transaction markers, whose time is now: 2100. */
    private static final long LATE = 4_102_444_800_000L;

    private final String bootstrap;
    private final Random random = new Random(640);
    private final Map<String, Long> sent = new HashMap<>();
    private volatile Exception failure;

    private Produce(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    /** Sends nothing before it is told to, so that a flush is a batch. */
    private Producer<byte[], byte[]> producer(String codec, String... more) {
        String[] type = codec.split(":");
        Map<String, Object> config = new HashMap<>(Map.of(
            "bootstrap.servers", bootstrap,
            "compression.type", type[0],
            "batch.size", 3 << 20,
            "max.request.size", 3 << 20,
            "linger.ms", 20_000,
            "request.timeout.ms", 20_000,
            "delivery.timeout.ms", 40_000));
        if (type.length > 1) {
            config.put("compression." + type[0] + ".level", type[1]);
        }
        for (int i = 0; i < more.length; i += 2) {
            config.put(more[i], more[i + 1]);
        }
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private void send(Producer<byte[], byte[]> producer, String topic, int partition,
            long timestamp, byte[] key, byte[] value, Header... headers) {
        check();
        producer.send(new ProducerRecord<>(topic, partition, timestamp, key, value,
            List.of(headers)), (metadata, exception) -> {
                if (exception != null) {
                    failure = exception;
                }
            });
        sent.merge(topic, 1L, Long::sum);
    }

    private void check() {
        if (failure != null) {
            throw new IllegalStateException("a record could not be sent", failure);
        }
    }

    private byte[] noise(int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    /** Text that compresses as text does. */
    private byte[] text(int length) {
        StringBuilder text = new StringBuilder();
        while (text.length() < length) {
            text.append("{\"order\":").append(random.nextInt(1_000_000)).append(",\"word\":\"")
                .append(Integer.toString(random.nextInt(400), 36)).append("\"} ");
        }
        return text.substring(0, length).getBytes();
    }

    private byte[] key(int of) {
        return ("key-" + random.nextInt(of)).getBytes();
    }

    /** Batches of 1 to 500 records of 5 to 5000 bytes. */
    private void same(String codec) {
        random.setSeed(1159);
        String topic = "java-same-" + codec.replace(':', '.');
        try (Producer<byte[], byte[]> producer = producer(codec)) {
            for (int batch = 0; batch < 100; batch++) {
                int records = new int[] {1, 2, 10, 60, 500}[batch % 5];
                for (int i = 0; i < records; i++) {
                    int length = 5 + random.nextInt(i % 50 == 0 ? 5000 : 400);
                    send(producer, topic, 0, START + 1000 * batch + i,
                        random.nextInt(4) == 0 ? null : key(1000), text(length));
                }
                producer.flush();
            }
        }
    }

    /** Headers, nulls, empty and large ones, times far apart. */
    private void odd(String topic, int partition, String codec, String idempotence) {
        Header[] headers = {new RecordHeader("a", noise(3)), new RecordHeader("", new byte[0]),
            new RecordHeader("null", null), new RecordHeader("a", noise(300)),
            new RecordHeader("\u00fc\u6f22\ud83d\ude00", "x".getBytes())};
        try (Producer<byte[], byte[]> producer =
                producer(codec, "enable.idempotence", idempotence)) {
            send(producer, topic, partition, 0, null, null);
            send(producer, topic, partition, START, new byte[0], new byte[0]);
            producer.flush();
            send(producer, topic, partition, START + 5, null, text(10), headers);
            send(producer, topic, partition, START - 86_400_000L, key(9), null, headers);
            send(producer, topic, partition, START + 3, key(9), noise(70));
            send(producer, topic, partition, START + 4, noise(300), noise(20_000), headers[3]);
            producer.flush();
            for (int length : new int[] {63, 64, 8191, 8192, 65_535, 65_536, 65_537}) {
                send(producer, topic, partition, START + length, key(9), noise(length));
                producer.flush();
            }
            send(producer, topic, partition, START, key(9), noise(900_000));
            producer.flush();
            send(producer, topic, partition, START, text(100_000), text(1_500_000), headers);
            producer.flush();
        }
    }

    /** Two transactions at a time, one of which is aborted; a last one stays open. */
    private void transactions(String topic, String codec) {
        Producer<byte[], byte[]> slow = producer(codec, "transactional.id", topic + codec);
        Producer<byte[], byte[]> quick = producer(codec, "transactional.id", topic + codec + 2,
            "transaction.timeout.ms", "900000");
        slow.initTransactions();
        quick.initTransactions();
        for (int round = 0; round < 4; round++) {
            slow.beginTransaction();
            for (int i = 0; i < 6; i++) {
                quick.beginTransaction();
                for (int n = 0; n < 20; n++) {
                    send(slow, topic, 0, START + n, key(50), text(100));
                    send(quick, topic, 0, START + n, key(50), text(100));
                }
                slow.flush();
                end(quick, i % 2 == 0);
            }
            end(slow, round % 2 == 1);
        }
        slow.close();
        quick.beginTransaction();
        send(quick, topic, 0, START, key(50), text(100));
        quick.flush();
        quick.close(Duration.ZERO); // a proper close would abort it
    }

    private static void end(Producer<?, ?> producer, boolean commit) {
        producer.flush();
        if (commit) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    /** Batches of every codec in turn, to three partitions, more than a segment in each. */
    private void segments(String topic) {
        List<Producer<byte[], byte[]>> producers = new ArrayList<>();
        for (String codec : CODECS) {
            producers.add(producer(codec));
        }
        for (int batch = 0; batch < 150; batch++) {
            Producer<byte[], byte[]> producer = producers.get(batch % producers.size());
            for (int i = 0; i < 60; i++) {
                send(producer, topic, i % 3, START + 1000 * batch + i, key(100), noise(1000));
            }
            producer.flush();
        }
        producers.forEach(Producer::close);
    }

    /** The same few keys for hours, a segment an hour, with tombstones and transactions. */
    private void compacted(String topic, int keys) {
        for (int hour = 0; hour < 15; hour++) {
            String codec = CODECS[hour % CODECS.length];
            long time = LATE + 3_600_000L * hour;
            try (Producer<byte[], byte[]> plain = producer(codec);
                    Producer<byte[], byte[]> transactional =
                        producer(codec, "transactional.id", topic + codec)) {
                transactional.initTransactions();
                transactional.beginTransaction();
                for (int i = 0; i < 300; i++) {
                    send(i % 3 == 0 ? transactional : plain, topic, 0, time + i, key(keys),
                        i % 7 == 0 ? null : text(120));
                    if (i % 50 == 49) {
                        plain.flush();
                        transactional.flush();
                    }
                }
                end(transactional, hour % 2 == 0);
            }
        }
    }

    /** Until all segments of a partition but the active one have been cleaned. */
    static void awaitCleaner(Path data, String topic)
            throws IOException, InterruptedException {
        for (int tries = 0; tries < 600; tries++) {
            long active;
            try (var files = Files.list(data.resolve(topic + "-0"))) {
                active = files.map(file -> file.getFileName().toString())
                    .filter(name -> name.endsWith(".log"))
                    .mapToLong(name -> Long.parseLong(name.replace(".log", ""))).max().orElse(0);
            }
            Path cleaned = data.resolve("cleaner-offset-checkpoint");
            if (active > 0 && Files.exists(cleaned)
                    && Files.readAllLines(cleaned).contains(topic + " 0 " + active)) {
                return;
            }
            Thread.sleep(100);
        }
        throw new IOException(topic + " was not compacted within a minute");
    }

    private static NewTopic topic(String name, int partitions, String... config) {
        Map<String, String> configs = new HashMap<>();
        for (int i = 0; i < config.length; i += 2) {
            configs.put(config[i], config[i + 1]);
        }
        return new NewTopic(name, partitions, (short) 1).configs(configs);
    }

    private void createTopics() throws ExecutionException, InterruptedException {
        List<NewTopic> topics = new ArrayList<>();
        for (String codec : SAME) {
            topics.add(topic("java-same-" + codec.replace(':', '.'), 1));
        }
        topics.add(topic("java-odd", 5, "segment.bytes", "2097152"));
        topics.add(topic("java-odd-not-idempotent", 5));
        topics.add(topic("java-segments", 3, "segment.bytes", "1048576"));
        topics.add(topic("java-recompressed-gzip", 5, "compression.type", "gzip"));
        topics.add(topic("java-append-time", 5, "message.timestamp.type", "LogAppendTime"));
        for (String codec : CODECS) {
            topics.add(topic("java-transactions-" + codec, 1));
        }
        for (int keys : new int[] {30, 3000}) {
            topics.add(topic("java-compacted-" + keys, 1, "cleanup.policy", "compact",
                "segment.ms", "1800000", "min.cleanable.dirty.ratio", "0.01",
                "message.timestamp.after.max.ms", Long.toString(Long.MAX_VALUE)));
        }
        for (String client : new String[] {"librdkafka", "kafka-python"}) {
            for (String codec : CODECS) {
                topics.add(topic(client + "-" + codec, 1));
                topics.add(topic(client + "-transactions-" + codec, 1));
            }
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(topics).all().get();
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 3) {
            System.err.println("usage: Produce BOOTSTRAP DATA_DIRECTORY SENT");
            System.exit(2);
        }
        System.out.println("Kafka " + AppInfoParser.getVersion() + ", Java " + Runtime.version());
        Produce produce = new Produce(args[0]);
        produce.createTopics();
        for (int keys : new int[] {30, 3000}) {
            produce.compacted("java-compacted-" + keys, keys);
        }
        for (String codec : SAME) {
            produce.same(codec);
        }
        for (int i = 0; i < CODECS.length; i++) {
            produce.odd("java-odd", i, CODECS[i], "true");
            produce.odd("java-odd-not-idempotent", i, CODECS[i], "false");
            produce.odd("java-recompressed-gzip", i, CODECS[i], "true");
            produce.odd("java-append-time", i, CODECS[i], "true");
            produce.transactions("java-transactions-" + CODECS[i], CODECS[i]);
        }
        produce.segments("java-segments");
        for (int keys : new int[] {30, 3000}) {
            awaitCleaner(Path.of(args[1]), "java-compacted-" + keys);
        }
        produce.check();
        List<String> lines = new ArrayList<>();
        produce.sent.forEach((topic, records) ->
            lines.add("{\"topic\":\"" + topic + "\",\"sent\":" + records + "}"));
        Files.write(Path.of(args[2]), lines);
    }
}
