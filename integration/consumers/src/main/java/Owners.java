import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes owners of blobs with Kafka's own producer, from lines "path <tab> owner". Arguments: brokers, topic. */
public class Owners {

    public static void main(String[] args) throws Exception {
        var settings = Map.<String, Object>of("bootstrap.servers", args[0]);
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (var line = lines.readLine(); line != null; line = lines.readLine()) {
                var pair = line.split("\t");
                producer.send(new ProducerRecord<>(args[1], pair[0], pair[1]), (sent, error) -> {
                    if (error != null) {
                        error.printStackTrace();
                        Runtime.getRuntime().halt(1);
                    }
                });
            }
        }
    }
}
