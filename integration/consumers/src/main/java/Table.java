import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * Kafka Streams: the existing blobs, from a compacted topic (BRIDGE_ENVELOPE=row, BRIDGE_KEY_FORMAT=string,
 * BRIDGE_RESOLVED_TO=topic). Deletions are null values. Arguments: brokers, application id, topic. It ends when it has read
 * what the topic holds, and prints its table.
 */
public class Table {

    static Topology topology(String changes) {
        var builder = new StreamsBuilder();
        builder.table(changes, Consumed.with(Serdes.String(), Serdes.String()),
                Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("blobs"));
        return builder.build();
    }

    static Properties settings(String brokers, String application) {
        return LatestState.settings(brokers, application);
    }

    public static void main(String[] args) throws Exception {
        try (var app = new Bounded(topology(args[2]), settings(args[0], args[1]))) {
            app.read(args[2]);
            var blobs = app.streams.store(StoreQueryParameters.fromNameAndType("blobs", QueryableStoreTypes.<String, String>keyValueStore()));
            try (var rows = blobs.all()) {
                rows.forEachRemaining(row -> System.out.println(row.value));
            }
        }
    }
}
