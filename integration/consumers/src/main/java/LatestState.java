import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
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
 * Kafka Streams: the existing blobs, each with its owner from another topic. Arguments: brokers, application id, topic of
 * the changes (BRIDGE_KEY_FORMAT=string), topic of the owners, and the URL of the registry if the changes are in Avro. It ends
 * when it has read what both hold, and prints its table.
 */
public class LatestState {

    // docs: begin
    static Topology topology(String changes, String owners, Deserializer<Change> format) {
        var builder = new StreamsBuilder();
        var text = Consumed.with(Serdes.String(), Serdes.String());
        KTable<String, String> blobs = builder.stream(changes, Consumed.with(Serdes.String(), Serdes.ByteArray()))
                .filter((path, value) -> path != null)                            // markers
                .mapValues(value -> format.deserialize(changes, value).row())     // null after a deletion, which removes the row
                .toTable(Materialized.with(Serdes.String(), Serdes.String()));
        // No repartitioning: the bridge uses the same partitioner as Kafka's producer.
        blobs.join(builder.table(owners, text), LatestState::withOwner,
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("blobs").withValueSerde(Serdes.String()));
        return builder.build();
    }

    static Properties settings(String brokers, String application) {
        var settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        // For all consumers, also those that restore state, so not main.consumer.isolation.level.
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.ISOLATION_LEVEL_CONFIG), "read_committed");
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        return settings;
    }

    static String withOwner(String blob, String owner) {
        try {
            var json = new ObjectMapper();
            return ((ObjectNode) json.readTree(blob)).put("owner", owner).toString();
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException(e);
        }
    }
    // docs: end

    public static void main(String[] args) throws Exception {
        try (var app = new Bounded(topology(args[2], args[3], Bounded.format(args, 4)), settings(args[0], args[1]))) {
            app.read(args[2], args[3]);
            var blobs = app.streams.store(StoreQueryParameters.fromNameAndType("blobs", QueryableStoreTypes.<String, String>keyValueStore()));
            try (var rows = blobs.all()) {
                rows.forEachRemaining(row -> System.out.println(row.value));
            }
        }
    }
}
