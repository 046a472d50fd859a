import java.time.Duration;
import java.util.List;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** Reads what topics hold, and no more. */
class ToEnd {

    interface Reader<K, V> {
        void read(ConsumerRecord<K, V> record) throws Exception;
    }

    static <K, V> void read(Consumer<K, V> consumer, List<String> topics, Reader<K, V> reader) throws Exception {
        var partitions = topics.stream().flatMap(topic -> consumer.partitionsFor(topic).stream())
                .map(p -> new TopicPartition(p.topic(), p.partition())).toList();
        consumer.assign(partitions);
        var ends = consumer.endOffsets(partitions);
        consumer.seekToBeginning(partitions);
        while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
            for (var record : consumer.poll(Duration.ofMillis(100))) {
                reader.read(record);
            }
        }
    }
}
