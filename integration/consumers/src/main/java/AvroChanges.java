import java.util.Map;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.common.serialization.Deserializer;

// docs: begin
/** Reads values of the wrapped envelope in Avro. */
public class AvroChanges implements Deserializer<Change> {
    private final Deserializer<GenericRecord> avro = new AvroRecords();

    @Override
    public void configure(Map<String, ?> settings, boolean isKey) {
        avro.configure(settings, isKey);
    }

    @Override
    public Change deserialize(String topic, byte[] bytes) {
        var value = avro.deserialize(topic, bytes);
        if (value.get("resolved") != null) {
            return Change.marker(value.get("resolved").toString());
        }
        var key = (GenericRecord) value.get("key");
        var after = value.get("after");
        return new Change(key.get("path").toString(), Change.millis(value.get("updated").toString()),
                after == null ? null : after.toString());
    }
}
// docs: end
