package plain

import "strings"

// Colours of verdicts, as a terminal takes them.
const (
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	reset  = "\x1b[0m"
)

// verdicts are the words that a line begins with to say how something is: those of check, status, verify, and of the
// end of a run.
var verdicts = []struct{ word, colour string }{
	{"ok", green}, {"holds", green}, {"up to date", green}, {"Delivered", green},
	{"warning", yellow}, {"not checked", yellow}, {"catching up", yellow}, {"starting", yellow},
	{"Interrupted", yellow},
	{"failed", red}, {"BROKEN", red}, {"degraded", red}, {"nobody is running", red},
}

// Paint returns a line with a colour for the verdict that it begins with, if any.
func Paint(line string) string {
	for _, v := range verdicts {
		if rest, is := strings.CutPrefix(line, v.word); is && (rest == "" || strings.ContainsAny(rest[:1], " :,.\n")) {
			return v.colour + v.word + reset + rest
		}
	}
	return line
}

// paint gives the lines that begin in text their colours.
func (w *Writer) paint(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		begins := !w.within
		w.within = !strings.HasSuffix(line, "\n")
		if begins {
			line = Paint(line)
		}
		b.WriteString(line)
	}
	return b.String()
}
