import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileReader;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Prints what a sink of Kafka Connect gets with settings such as connect/sink.properties, to the end of what a topic holds.
 * Arguments: the file, brokers, topic.
 */
public class Unwrap {

    public static void main(String[] args) throws Exception {
        var settings = new Properties();
        settings.load(new FileReader(args[0]));
        var key = Utils.newInstance(settings.getProperty("key.converter"), Converter.class);
        key.configure(under("key.converter.", settings), true);
        var value = Utils.newInstance(settings.getProperty("value.converter"), Converter.class);
        value.configure(under("value.converter.", settings), false);
        @SuppressWarnings("unchecked")
        Transformation<SinkRecord> unwrap = Utils.newInstance(settings.getProperty("transforms.unwrap.type"), Transformation.class);
        unwrap.configure(under("transforms.unwrap.", settings));

        var reader = under("consumer.override.", settings);
        reader.put("bootstrap.servers", args[1]);
        var json = new ObjectMapper();
        try (var consumer = new KafkaConsumer<>(reader, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            ToEnd.read(consumer, List.of(args[2]), record -> {
                var k = key.toConnectData(record.topic(), record.key());
                var v = value.toConnectData(record.topic(), record.value());
                var out = unwrap.apply(new SinkRecord(record.topic(), record.partition(), k.schema(), k.value(), v.schema(), v.value(), record.offset()));
                if (out != null) {
                    var row = (Struct) out.value(); // null: a deletion, with the handling mode "tombstone"
                    var line = new LinkedHashMap<String, Object>();
                    line.put("key", k.value());
                    for (var field : new String[] {"path", "event_id", "__op", "__deleted"}) {
                        line.put(field, row == null || row.schema().field(field) == null ? null : row.get(field));
                    }
                    System.out.println(json.writeValueAsString(line));
                }
            });
        }
    }

    private static Map<String, Object> under(String prefix, Properties settings) {
        var some = new HashMap<String, Object>();
        settings.stringPropertyNames().stream().filter(name -> name.startsWith(prefix))
                .forEach(name -> some.put(name.substring(prefix.length()), settings.getProperty(name)));
        return some;
    }
}
