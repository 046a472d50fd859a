import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.regex.Pattern;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;

/**
 * Runs scripts of sql/ to the end of what their topics hold, and prints the rows that their last statements select.
 * Arguments: scripts, and replacements of texts in them as old=new, for example localhost:9092=kafka:9092.
 */
public class Sql {

    private static final Pattern SET = Pattern.compile("SET '(.+)' = '(.+)'");

    public static void main(String[] args) throws Exception {
        for (var name : args) {
            if (name.contains("=")) {
                continue;
            }
            var script = Files.readString(Path.of(name)).replaceAll("(?m)^ *--.*\n", "");
            for (var arg : args) {
                var pair = arg.split("=", 2);
                script = pair.length == 2 ? script.replace(pair[0], pair[1]) : script;
            }
            run(name, List.of(script.strip().split(";\\s*")));
        }
    }

    private static void run(String name, List<String> statements) throws Exception {
        var env = StreamExecutionEnvironment.getExecutionEnvironment(new Configuration().set(RestOptions.PORT, 0));
        env.setParallelism(1);
        var tables = StreamTableEnvironment.create(env);
        for (var statement : statements.subList(0, statements.size() - 1)) {
            var set = SET.matcher(statement);
            if (set.matches()) {
                tables.getConfig().set(set.group(1), set.group(2));
            } else {
                tables.executeSql(statement);
            }
        }
        for (var table : tables.listTables()) {
            tables.executeSql("ALTER TABLE " + table + " SET ('scan.bounded.mode' = 'latest-offset')");
        }
        tables.toChangelogStream(tables.sqlQuery(statements.get(statements.size() - 1)))
                .transform("release", Types.STRING, new Release(name))
                .print();
        env.execute();
    }

    /** Operators send rows before the watermark that released them. This one waits for it, to print it, too. */
    static class Release extends AbstractStreamOperator<String> implements OneInputStreamOperator<Row, String> {
        private static final ObjectMapper JSON = new ObjectMapper();
        private final String script;
        private final List<Row> rows = new ArrayList<>();

        Release(String script) {
            this.script = script;
        }

        @Override
        public void processElement(StreamRecord<Row> element) {
            rows.add(element.getValue());
        }

        @Override
        public void processWatermark(Watermark mark) throws Exception {
            for (var row : rows) {
                var line = new LinkedHashMap<String, Object>();
                line.put("script", script);
                line.put("kind", row.getKind().shortString());
                line.put("watermark", mark.getTimestamp());
                for (var name : row.getFieldNames(true)) {
                    var value = row.getField(name);
                    line.put(name, value == null || value instanceof Number ? value : value.toString());
                }
                output.collect(new StreamRecord<>(JSON.writeValueAsString(line)));
            }
            rows.clear();
            super.processWatermark(mark);
        }
    }
}
