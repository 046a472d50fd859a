import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * Kafka Streams: the blobs that exist, each with its owner from another topic. Arguments: brokers, application id, topic of
 * the changes (BRIDGE_KEY_FORMAT=string), topic of the owners. It ends when it has read what both hold, and prints its table.
 */
public class LatestState {

    private static final ObjectMapper JSON = new ObjectMapper();

    // docs: begin
    static Topology topology(String changes, String owners) {
        var builder = new StreamsBuilder();
        var text = Consumed.with(Serdes.String(), Serdes.String());
        KTable<String, String> blobs = builder.stream(changes, text)
                .filter((path, value) -> path != null) // markers
                .mapValues(LatestState::after)         // null after a deletion, which removes the row
                .toTable(Materialized.with(Serdes.String(), Serdes.String()));
        // No repartitioning: the bridge puts a key where Kafka's own producer does.
        blobs.join(builder.table(owners, text), LatestState::withOwner,
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("blobs").withValueSerde(Serdes.String()));
        return builder.build();
    }

    static Properties settings(String brokers, String application) {
        var settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        // For all consumers, those that restore included: not main.consumer.isolation.level.
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.ISOLATION_LEVEL_CONFIG), "read_committed");
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        return settings;
    }

    /** The row after a change, or null. */
    static String after(String value) {
        var after = parse(value).get("after");
        return after.isNull() ? null : after.toString();
    }
    // docs: end

    static String withOwner(String blob, String owner) {
        return ((ObjectNode) parse(blob)).put("owner", owner).toString();
    }

    static JsonNode parse(String json) {
        try {
            return JSON.readTree(json);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        var settings = settings(args[0], args[1]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("latest-state").toString());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        try (var admin = Admin.create(Map.of("bootstrap.servers", args[0]));
                var streams = new KafkaStreams(topology(args[2], args[3]), settings)) {
            var ends = ends(admin, args[2], args[3]);
            streams.setUncaughtExceptionHandler(e -> {
                e.printStackTrace();
                Runtime.getRuntime().halt(1);
                return null;
            });
            streams.start();
            while (!reached(admin, args[1], ends)) {
                Thread.sleep(100);
            }
            var blobs = streams.store(StoreQueryParameters.fromNameAndType("blobs", QueryableStoreTypes.<String, String>keyValueStore()));
            try (var rows = blobs.all()) {
                rows.forEachRemaining(row -> System.out.println(row.value));
            }
        }
    }

    /** Where the committed records of the topics end. */
    private static Map<TopicPartition, Long> ends(Admin admin, String... topics) throws Exception {
        var latest = new HashMap<TopicPartition, OffsetSpec>();
        for (var topic : admin.describeTopics(List.of(topics)).allTopicNames().get().values()) {
            topic.partitions().forEach(p -> latest.put(new TopicPartition(topic.name(), p.partition()), OffsetSpec.latest()));
        }
        var ends = new HashMap<TopicPartition, Long>();
        admin.listOffsets(latest, new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all().get()
                .forEach((partition, end) -> ends.put(partition, end.offset()));
        ends.values().removeIf(end -> end == 0);
        return ends;
    }

    private static boolean reached(Admin admin, String group, Map<TopicPartition, Long> ends) throws Exception {
        var done = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        return ends.entrySet().stream().allMatch(end -> {
            var offset = done.get(end.getKey());
            return offset != null && offset.offset() >= end.getValue();
        });
    }
}
