import java.nio.file.Files;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;

/** A Kafka Streams application that is to read what its topics hold, and no more. Applications in production run on. */
class Bounded implements AutoCloseable {
    final KafkaStreams streams;
    private final Admin admin;
    private final String application;

    Bounded(Topology topology, Properties settings) throws Exception {
        settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("streams").toString());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        application = settings.getProperty(StreamsConfig.APPLICATION_ID_CONFIG);
        admin = Admin.create(Map.of("bootstrap.servers", settings.getProperty(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG)));
        streams = new KafkaStreams(topology, settings);
        streams.setUncaughtExceptionHandler(e -> {
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
            return null;
        });
        streams.start();
    }

    /** How the topic is to be read: the registry's URL is argument i, if there is one. */
    static Deserializer<Change> format(String[] args, int i) {
        if (args.length <= i) {
            return new JsonChanges();
        }
        var avro = new AvroChanges();
        avro.configure(Map.of("schema.registry.url", args[i]), false);
        return avro;
    }

    /** Waits until the application has committed that it has read all that the topics hold now. */
    void read(String... topics) throws Exception {
        var latest = new HashMap<TopicPartition, OffsetSpec>();
        for (var topic : admin.describeTopics(List.of(topics)).allTopicNames().get().values()) {
            topic.partitions().forEach(p -> latest.put(new TopicPartition(topic.name(), p.partition()), OffsetSpec.latest()));
        }
        // Not the stable ones: the end of a transaction reaches the partitions some moments after its commit.
        var ends = admin.listOffsets(latest).all().get();
        ends.values().removeIf(end -> end.offset() == 0);
        while (true) {
            var read = admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get();
            if (ends.entrySet().stream().allMatch(end -> read.get(end.getKey()) != null && read.get(end.getKey()).offset() >= end.getValue().offset())) {
                return;
            }
            Thread.sleep(100);
        }
    }

    @Override
    public void close() {
        streams.close();
        admin.close();
    }
}
