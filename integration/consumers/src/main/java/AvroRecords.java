import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;

// docs: begin
/**
 * Reads a zero byte, the schema's id and the record in Avro. Confluent's KafkaAvroDeserializer does the same with the same
 * setting, but it is not on Maven Central.
 */
public class AvroRecords implements Deserializer<GenericRecord> {
    private final Map<Integer, GenericDatumReader<GenericRecord>> readers = new HashMap<>();
    private String registry;

    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {
        registry = (String) settings.get("schema.registry.url");
    }

    @Override
    public GenericRecord deserialize(String topic, byte[] bytes) {
        if (bytes == null) {
            return null;
        }
        var in = ByteBuffer.wrap(bytes);
        try {
            if (in.get() != 0) {
                throw new SerializationException("this is no Avro");
            }
            var id = in.getInt();
            var reader = readers.get(id);
            if (reader == null) {
                reader = new GenericDatumReader<>(schema(id));
                readers.put(id, reader);
            }
            return reader.read(null, DecoderFactory.get().binaryDecoder(bytes, in.position(), in.remaining(), null));
        } catch (IOException e) {
            throw new SerializationException("reading Avro of " + topic, e);
        }
    }

    private Schema schema(int id) throws IOException {
        try (var answer = URI.create(registry + "/schemas/ids/" + id).toURL().openStream()) {
            return new Schema.Parser().parse(new ObjectMapper().readTree(answer).get("schema").asText());
        }
    }
}
// docs: end
