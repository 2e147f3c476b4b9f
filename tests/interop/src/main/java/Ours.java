import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Topics whose segments std-host wrote. `create` makes them, empty; once the segments are in
 * their place and the broker is up again, `serve` waits for the cleaner, tells what the broker
 * makes of them, reads them, and has the broker append a record to each.
 */
public final class Ours {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final String bootstrap;
    private final Map<TopicPartition, JsonNode> topics = new LinkedHashMap<>();

    private Ours(String bootstrap, Path topics) throws IOException {
        this.bootstrap = bootstrap;
        for (String line : Files.readAllLines(topics)) {
            JsonNode topic = JSON.readTree(line);
            this.topics.put(new TopicPartition(topic.get("topic").asText(), 0), topic);
        }
    }

    private void create(Admin admin) throws ExecutionException, InterruptedException {
        List<NewTopic> created = new ArrayList<>();
        topics.forEach((partition, topic) -> {
            Map<String, String> config = new HashMap<>();
            topic.get("config").properties()
                .forEach(entry -> config.put(entry.getKey(), entry.getValue().asText()));
            created.add(new NewTopic(partition.topic(), 1, (short) 1).configs(config));
        });
        admin.createTopics(created).all().get();
    }

    private Map<TopicPartition, Long> offsets(Admin admin, OffsetSpec spec, IsolationLevel level)
            throws ExecutionException, InterruptedException {
        Map<TopicPartition, OffsetSpec> specs = topics.keySet().stream()
            .collect(Collectors.toMap(Function.identity(), partition -> spec));
        Map<TopicPartition, Long> offsets = new HashMap<>();
        admin.listOffsets(specs, new ListOffsetsOptions(level)).all().get()
            .forEach((partition, info) -> offsets.put(partition, info.offset()));
        return offsets;
    }

    private static Map<String, Object> producer(ProducerState state) {
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("producer_id", state.producerId());
        line.put("producer_epoch", state.producerEpoch());
        line.put("last_sequence", state.lastSequence());
        line.put("last_timestamp", state.lastTimestamp());
        line.put("coordinator_epoch", state.coordinatorEpoch().orElse(-1));
        line.put("transaction_start", state.currentTransactionStartOffset().orElse(-1));
        return line;
    }

    /** Offsets and producers of each partition, as the broker has them. */
    private void tell(Admin admin, Path output)
            throws ExecutionException, InterruptedException, IOException {
        var starts = offsets(admin, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED);
        var ends = offsets(admin, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED);
        var stable = offsets(admin, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED);
        var producers = admin.describeProducers(topics.keySet()).all().get();
        List<String> lines = new ArrayList<>();
        for (TopicPartition partition : topics.keySet()) {
            lines.add(JSON.writeValueAsString(Map.of(
                "partition", partition.toString(),
                "start", starts.get(partition),
                "end", ends.get(partition),
                "stable", stable.get(partition),
                "producers", producers.get(partition).activeProducers().stream()
                    .map(Ours::producer).toList())));
        }
        // All of it or nothing: others wait for it.
        Path written = output.resolveSibling("told.new");
        Files.write(written, lines);
        Files.move(written, output, StandardCopyOption.ATOMIC_MOVE);
    }

    /** A record to each topic, with the codec that its segment has. */
    private void append() throws ExecutionException, InterruptedException {
        Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        topics.forEach((partition, topic) -> {
            var producer = producers.computeIfAbsent(topic.get("codec").asText(), codec ->
                new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap,
                    "compression.type", codec, "delivery.timeout.ms", 40_000),
                    new ByteArraySerializer(), new ByteArraySerializer()));
            // Not so late that the broker would begin a segment for it.
            sent.add(producer.send(new ProducerRecord<>(partition.topic(), 0, 1_700_000_100_000L,
                "appended".getBytes(), partition.topic().getBytes())));
        });
        for (Future<RecordMetadata> metadata : sent) {
            metadata.get();
        }
        producers.values().forEach(KafkaProducer::close);
    }

    private void serve(Admin admin, Path data, Path output)
            throws ExecutionException, InterruptedException, IOException {
        for (var topic : topics.entrySet()) {
            if (topic.getValue().get("config").has("cleanup.policy")) {
                Produce.awaitCleaner(data, topic.getKey().topic());
            }
        }
        tell(admin, output.resolve("told.jsonl"));
        Map<TopicPartition, Long> beginnings = new HashMap<>();
        topics.keySet().forEach(partition -> beginnings.put(partition, 0L));
        Consume.consume(bootstrap, "read_uncommitted", beginnings, output.resolve("java-seen.jsonl"));
        beginnings.keySet().removeIf(partition -> !partition.topic().contains("-transactions-"));
        Consume.consume(bootstrap, "read_committed", beginnings,
            output.resolve("java-committed.jsonl"));
        var ends = offsets(admin, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED);
        append();
        Consume.consume(bootstrap, "read_uncommitted", ends, output.resolve("appended.jsonl"));
    }

    public static void main(String[] args) throws Exception {
        if (args.length < 3) {
            System.err.println("usage: Ours create BOOTSTRAP TOPICS\n"
                + "       Ours serve BOOTSTRAP TOPICS DATA_DIRECTORY OUTPUT_DIRECTORY");
            System.exit(2);
        }
        Ours ours = new Ours(args[1], Path.of(args[2]));
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[1]))) {
            if (args[0].equals("create")) {
                ours.create(admin);
            } else {
                ours.serve(admin, Path.of(args[3]), Path.of(args[4]));
            }
        }
    }
}
