import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

// docs: begin
/** A record of the topic: a change of a blob, or a marker, which has no path. */
public record Change(String path, long millis) {

    boolean isMarker() {
        return path == null;
    }

    /** Times are "<nanoseconds>.<10 digits>": the first 13 digits are milliseconds. */
    static long millis(String time) {
        return Long.parseLong(time.substring(0, 13));
    }

    /** Reads values of the wrapped envelope. */
    static class Decoder implements KafkaRecordDeserializationSchema<Change> {
        private static final ObjectMapper JSON = new ObjectMapper();

        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<Change> out) throws IOException {
            var value = JSON.readTree(record.value());
            var resolved = value.get("resolved");
            out.collect(resolved != null
                    ? new Change(null, millis(resolved.asText()))
                    : new Change(value.get("key").get(0).asText(), millis(value.get("updated").asText())));
        }

        @Override
        public TypeInformation<Change> getProducedType() {
            return TypeInformation.of(Change.class);
        }
    }

    /**
     * Only markers move the watermark. The source keeps one per partition, and the lowest counts. It is a millisecond below
     * the marker: a change just above the marker may have its millisecond.
     */
    static WatermarkStrategy<Change> watermarks() {
        return WatermarkStrategy.<Change>forGenerator(context -> new WatermarkGenerator<>() {
            @Override
            public void onEvent(Change change, long timestamp, WatermarkOutput out) {
                if (change.isMarker()) {
                    out.emitWatermark(new Watermark(change.millis() - 1));
                }
            }

            @Override
            public void onPeriodicEmit(WatermarkOutput out) {
                // Time alone completes nothing.
            }
        }).withTimestampAssigner((change, timestamp) -> change.millis());
    }
}
// docs: end
