import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Kafka Streams: changes per hour, each hour once, when it is complete. Arguments: brokers, application id, topic of the changes,
 * its partitions, topic of the hours, and the URL of the registry if the changes are in Avro. It ends when it has read what the
 * topic holds.
 */
public class CompleteHours {

    // docs: begin
    /** A marker of a partition: nothing up to this time follows, so the hours before it are complete in the partition. */
    record Part(int partition, long resolved, Map<Long, Long> hours) {}

    /** An hour that is complete in all partitions, and the marker that completed it. */
    record Hour(long begin, long changes, long resolved) {}

    static final long HOUR = 3_600_000;

    static Topology topology(String changes, int partitions, String hours, Deserializer<Change> format) {
        var builder = new StreamsBuilder();
        for (var name : new String[] {"open", "hours", "markers"}) {
            builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(name), Serdes.Long(), Serdes.Long()));
        }
        builder.stream(changes, Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
                .mapValues(value -> format.deserialize(changes, value))
                .process(EachPartition::new, "open")
                .repartition(Repartitioned.with(Serdes.Integer(), json(Part.class)).withName("parts").withNumberOfPartitions(1))
                .process(() -> new AllPartitions(partitions), "hours", "markers")
                .to(hours, Produced.with(Serdes.Integer(), json(Hour.class)));
        return builder.build();
    }

    /** Each task reads one partition. It keeps counts until a marker makes them final. */
    static class EachPartition extends ContextualProcessor<byte[], Change, Integer, Part> {
        @Override
        public void process(Record<byte[], Change> record) {
            KeyValueStore<Long, Long> open = context().getStateStore("open");
            var change = record.value();
            if (change.isMarker()) {
                var part = new Part(context().taskId().partition(), change.millis(), take(open, change.millis() - HOUR));
                context().forward(record.withKey(part.partition).withValue(part));
            } else {
                add(open, change.millis() / HOUR * HOUR, 1);
            }
        }
    }

    /** One task reads the markers of all partitions. An hour is complete when each had a marker at or after its end. */
    static class AllPartitions extends ContextualProcessor<Integer, Part, Integer, Hour> {
        private final int partitions;

        AllPartitions(int partitions) {
            this.partitions = partitions;
        }

        @Override
        public void process(Record<Integer, Part> record) {
            KeyValueStore<Long, Long> hours = context().getStateStore("hours");
            KeyValueStore<Long, Long> markers = context().getStateStore("markers");
            var part = record.value();
            part.hours.forEach((hour, changes) -> add(hours, hour, changes));
            markers.put((long) part.partition, part.resolved);
            var last = new ArrayList<Long>();
            try (var all = markers.all()) {
                all.forEachRemaining(marker -> last.add(marker.value));
            }
            if (last.size() == partitions) {
                var resolved = Collections.min(last);
                take(hours, resolved - HOUR).forEach((hour, changes) -> context().forward(record.withValue(new Hour(hour, changes, resolved))));
            }
        }
    }

    static void add(KeyValueStore<Long, Long> counts, long hour, long changes) {
        var before = counts.get(hour);
        counts.put(hour, before == null ? changes : before + changes);
    }

    /** Removes and returns the hours that started at this time or before. */
    static Map<Long, Long> take(KeyValueStore<Long, Long> counts, long last) {
        var taken = new TreeMap<Long, Long>();
        try (var range = counts.range(0L, last)) {
            range.forEachRemaining(hour -> taken.put(hour.key, hour.value));
        }
        taken.keySet().forEach(counts::delete);
        return taken;
    }

    static <T> Serde<T> json(Class<T> type) {
        var json = new ObjectMapper();
        return Serdes.serdeFrom((topic, value) -> {
            try {
                return json.writeValueAsBytes(value);
            } catch (IOException e) {
                throw new SerializationException(e);
            }
        }, (topic, bytes) -> {
            try {
                return json.readValue(bytes, type);
            } catch (IOException e) {
                throw new SerializationException(e);
            }
        });
    }
    // docs: end

    public static void main(String[] args) throws Exception {
        var settings = LatestState.settings(args[0], args[1]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2); // a restart counts nothing twice
        try (var app = new Bounded(topology(args[2], Integer.parseInt(args[3]), args[4], Bounded.format(args, 5)), settings)) {
            app.read(args[2]);
            app.read(args[1] + "-parts-repartition");
        }
    }
}
