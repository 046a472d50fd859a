import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.utils.Utils;

// Writes murmur2_kafka_clients.tsv: key in hex, partitions, partition, as Kafka's own Java client computes them.
// With kafka-clients 4.3.1: java -cp kafka-clients-4.3.1.jar Murmur2Vectors.java > murmur2_kafka_clients.tsv
public class Murmur2Vectors {
    public static void main(String[] args) {
        List<byte[]> keys = new ArrayList<>();
        for (String s : new String[] {"", "a", "[\"photos/a b.jpg\"]", "[\"c/a&b.txt\"]", "[\"c/\u00e9t\u00e9.txt\"]", "[\"c/\ud83d\ude00\"]", "photos/a b.jpg", "{\"path\": \"c/x\"}"})
            keys.add(s.getBytes(StandardCharsets.UTF_8));
        Random random = new Random(42);
        for (int n = 0; n <= 70; n++)
            for (int i = 0; i < 3; i++) {
                byte[] b = new byte[n];
                random.nextBytes(b);
                keys.add(b);
            }
        for (byte[] k : keys)
            for (int partitions : new int[] {1, 3, 6, 64, 1031})
                System.out.println(HexFormat.of().formatHex(k) + "\t" + partitions + "\t" + Utils.toPositive(Utils.murmur2(k)) % partitions);
    }
}
