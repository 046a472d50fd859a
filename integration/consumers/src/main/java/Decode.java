import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/** Prints the keys and values of topics in Avro. Arguments: brokers, URL of the registry, topics. */
public class Decode {

    public static void main(String[] args) throws Exception {
        var settings = Map.<String, Object>of(
                "bootstrap.servers", args[0],
                "isolation.level", "read_committed",
                "key.deserializer", AvroRecords.class,
                "value.deserializer", AvroRecords.class,
                "schema.registry.url", args[1]);
        var json = new ObjectMapper();
        try (var consumer = new KafkaConsumer<GenericRecord, GenericRecord>(settings)) {
            ToEnd.read(consumer, Arrays.asList(args).subList(2, args.length), record -> {
                var line = new LinkedHashMap<String, Object>();
                line.put("topic", record.topic());
                line.put("partition", record.partition());
                line.put("offset", record.offset());
                line.put("key", record.key() == null ? null : json.readTree(record.key().toString()));
                line.put("value", record.value() == null ? null : json.readTree(record.value().toString()));
                System.out.println(json.writeValueAsString(line));
            });
        }
    }
}
