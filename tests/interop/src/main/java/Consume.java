import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Reads every partition there is from its first offset to its last, once with
 * read_uncommitted and once with read_committed, and writes a line per record.
 */
public final class Consume {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Consume() { }

    private static Map<String, Object> line(ConsumerRecord<byte[], byte[]> record) {
        List<String[]> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            headers.add(new String[] {header.key(),
                header.value() == null ? null : HexFormat.of().formatHex(header.value())});
        }
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("partition", record.topic() + "-" + record.partition());
        line.put("offset", record.offset());
        line.put("timestamp", record.timestamp());
        line.put("timestamp_type", record.timestampType().toString());
        line.put("leader_epoch", record.leaderEpoch().orElse(-1));
        line.put("key", record.key()); // base64
        line.put("value", record.value());
        line.put("headers", headers);
        return line;
    }

    /** From an offset of each partition, or the first one behind it, to the last. */
    static void consume(String bootstrap, String isolation, Map<TopicPartition, Long> from,
            Path output) throws IOException {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap,
            "isolation.level", isolation, "exclude.internal.topics", false, "check.crcs", true,
            "auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config,
                    new ByteArrayDeserializer(), new ByteArrayDeserializer());
                BufferedWriter lines = Files.newBufferedWriter(output)) {
            consumer.assign(from.keySet());
            from.forEach(consumer::seek);
            Map<TopicPartition, Long> ends = consumer.endOffsets(from.keySet());
            long deadline = System.nanoTime() + Duration.ofSeconds(90).toNanos();
            while (!ends.entrySet().stream()
                    .allMatch(end -> consumer.position(end.getKey()) >= end.getValue())) {
                if (System.nanoTime() > deadline) {
                    throw new IOException("the consumer has not reached the ends within 90 s");
                }
                for (ConsumerRecord<byte[], byte[]> record
                        : consumer.poll(Duration.ofMillis(200))) {
                    lines.write(JSON.writeValueAsString(line(record)));
                    lines.write('\n');
                }
            }
        }
    }

    /** The first offset of every partition there is. */
    private static Map<TopicPartition, Long> beginnings(String bootstrap) {
        Map<String, Object> config =
            Map.of("bootstrap.servers", bootstrap, "exclude.internal.topics", false);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(config,
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.listTopics().forEach((topic, infos) -> infos.forEach(info ->
                partitions.add(new TopicPartition(topic, info.partition()))));
            return consumer.beginningOffsets(partitions);
        }
    }

    public static void main(String[] args) throws IOException {
        if (args.length != 3) {
            System.err.println("usage: Consume BOOTSTRAP SEEN COMMITTED");
            System.exit(2);
        }
        Map<TopicPartition, Long> beginnings = beginnings(args[0]);
        consume(args[0], "read_uncommitted", beginnings, Path.of(args[1]));
        consume(args[0], "read_committed", beginnings, Path.of(args[2]));
    }
}
