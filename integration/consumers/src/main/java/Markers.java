import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;

// docs: begin
/**
 * Only markers move the watermark. The source keeps one per partition, and the lowest counts. It is a millisecond below the
 * marker: a change just above the marker may have its millisecond.
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
        // Time alone completes nothing.
    }
}
// docs: end
