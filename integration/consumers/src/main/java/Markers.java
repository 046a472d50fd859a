import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;

// docs: begin
/**
 * Only markers advance the watermark. The source keeps one per partition and uses the lowest. It is one millisecond below the
 * marker, because a change just above the marker can be in the same millisecond.
 */
public class Markers implements WatermarkGenerator<Change> {

    static WatermarkStrategy<Change> watermarks() {
        return WatermarkStrategy.<Change>forGenerator(context -> new Markers()).withTimestampAssigner((change, timestamp) -> change.millis());
    }

    @Override
    public void onEvent(Change change, long timestamp, WatermarkOutput out) {
        if (change.isMarker()) {
            out.emitWatermark(new Watermark(change.millis() - 1));
        }
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput out) {
        // The passing of time completes nothing.
    }
}
// docs: end
