package logging

import (
	"log/slog"

	"blobfeed/internal/plain"
)

// clipped returns r with its long texts cut: an error may hold what a server, or one event, has to say. What repeats is
// kept until its next line, so it is cut before.
func clipped(r slog.Record) slog.Record {
	var attrs []slog.Attr
	cut := false
	r.Attrs(func(a slog.Attr) bool {
		text := ""
		switch v := a.Value.Any().(type) {
		case string:
			text = v
		case error:
			text = v.Error()
		}
		if len(text) > plain.MaxText {
			cut = true
			a.Value = slog.StringValue(plain.Clip(text))
		}
		attrs = append(attrs, a)
		return true
	})
	if !cut {
		return r
	}
	c := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	c.AddAttrs(attrs...)
	return c
}
