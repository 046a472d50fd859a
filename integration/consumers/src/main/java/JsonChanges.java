import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;

// docs: begin
/** Reads values of the wrapped envelope. */
public class JsonChanges implements Deserializer<Change> {
    private static final ObjectMapper JSON = new ObjectMapper();

    @Override
    public Change deserialize(String topic, byte[] bytes) {
        try {
            var value = JSON.readTree(bytes);
            if (value.has("resolved")) {
                return Change.marker(value.get("resolved").asText());
            }
            var after = value.get("after");
            return new Change(value.get("key").get(0).asText(), Change.millis(value.get("updated").asText()),
                    after.isNull() ? null : after.toString());
        } catch (IOException e) {
            throw new SerializationException("reading a change of " + topic, e);
        }
    }
}
// docs: end
