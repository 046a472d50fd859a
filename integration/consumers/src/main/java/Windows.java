import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/**
 * Flink DataStream: changes per container in windows of some minutes. Arguments: brokers, topic, minutes, and the URL of the
 * registry if the topic is in Avro.
 */
public class Windows {

    public static void main(String[] args) throws Exception {
        var env = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration().set(RestOptions.PORT, 0));
        env.setParallelism(2);
        // docs: begin
        var format = args.length > 3
                ? KafkaRecordDeserializationSchema.valueOnly(AvroChanges.class, Map.of("schema.registry.url", args[3]))
                : KafkaRecordDeserializationSchema.valueOnly(JsonChanges.class);
        var source = KafkaSource.<Change>builder()
                .setBootstrapServers(args[0])
                .setTopics(args[1])
                .setProperty("isolation.level", "read_committed")
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setBounded(OffsetsInitializer.latest()) // without this line the job does not end
                .setDeserializer(format)
                .build();
        var late = new OutputTag<Change>("late") {};
        var counts = env.fromSource(source, Markers.watermarks(), "changes")
                .filter(change -> !change.isMarker())
                .keyBy(change -> change.path().substring(0, change.path().indexOf('/')))
                .window(TumblingEventTimeWindows.of(Duration.ofMinutes(Long.parseLong(args[2]))))
                .sideOutputLateData(late)
                .process(new Count());
        // docs: end
        counts.union(counts.getSideOutput(late).map(change -> "{\"late\":%d}".formatted(change.millis()))).print().setParallelism(1);
        env.execute();
    }

    static class Count extends ProcessWindowFunction<Change, String, String, TimeWindow> {
        @Override
        public void process(String container, Context context, Iterable<Change> changes, Collector<String> out) {
            if (context.currentWatermark() == Long.MAX_VALUE) {
                return; // the end of the input, not a marker: the window is not complete
            }
            var count = 0;
            for (var change : changes) {
                count++;
            }
            out.collect("{\"container\":\"%s\",\"from\":\"%s\",\"count\":%d,\"watermark\":%d}".formatted(
                    container, Instant.ofEpochMilli(context.window().getStart()), count, context.currentWatermark()));
        }
    }
}
