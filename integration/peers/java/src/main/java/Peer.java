import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.changefeed.BlobChangefeedClientBuilder;
import com.azure.storage.blob.changefeed.models.BlobChangefeedEvent;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.datatype.jsr310.JavaTimeModule;
import java.time.OffsetDateTime;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Reads the change feed with Azure's SDK and writes it to Kafka with Apache Kafka's client. */
public final class Peer {
  public static void main(String[] args) throws Exception {
    var service = new BlobServiceClientBuilder()
        .connectionString(System.getenv("AZURE_STORAGE_CONNECTION_STRING")).buildClient();
    var feed = new BlobChangefeedClientBuilder(service).buildClient();
    var json = new ObjectMapper().registerModule(new JavaTimeModule());
    var topic = System.getenv("PEER_TOPIC");
    var end = OffsetDateTime.parse(System.getenv("PEER_END"));
    var failed = new AtomicReference<Exception>();
    Map<String, Object> config = Map.of("bootstrap.servers", System.getenv("KAFKA_BROKERS"), "acks", "all");
    try (var producer = new KafkaProducer<>(config, new StringSerializer(), new ByteArraySerializer())) {
      for (BlobChangefeedEvent event : feed.getEvents(null, end)) {
        var key = event.getSubject().replaceFirst("^/blobServices/default/containers/", "").replaceFirst("/blobs/", "/");
        producer.send(new ProducerRecord<>(topic, key, json.writeValueAsBytes(event)), (metadata, e) -> {
          if (e != null) {
            failed.set(e);
          }
        });
      }
      producer.flush();
    }
    if (failed.get() != null) {
      throw failed.get();
    }
    System.exit(0); // the SDK's threads would keep the program alive for some seconds
  }
}
