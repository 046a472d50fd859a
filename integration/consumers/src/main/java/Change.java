// docs: begin
/** A record of the topic: a change of a blob (row is null for a deletion), or a marker (path is null). */
public record Change(String path, long millis, String row) {

    static Change marker(String resolved) {
        return new Change(null, millis(resolved), null);
    }

    boolean isMarker() {
        return path == null;
    }

    /** Times are "<nanoseconds>.<10 digits>": the first 13 digits are milliseconds. */
    static long millis(String time) {
        return Long.parseLong(time.substring(0, 13));
    }
}
// docs: end
