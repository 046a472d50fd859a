package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
)

// theme is the colours of one chart, those of GitHub's pages.
type theme struct{ name, text, faint, ours, others string }

var themes = []theme{
	{"light", "#1f2328", "#59636e", "#0969da", "#b6bfc8"},
	{"dark", "#f0f6fc", "#9198a1", "#4493f8", "#555e68"},
}

// panel is one figure of all readers, as bars.
type panel struct {
	title  string
	value  func(result) float64
	format func(float64) string
}

var panels = []panel{
	{"CPU, µs per event", func(r result) float64 { return r.CPU },
		func(v float64) string { return fmt.Sprintf("%.1f", v) }},
	{"Events per second", func(r result) float64 { return r.PerSecond }, thousands},
	{"Peak memory, MB", func(r result) float64 { return float64(r.MB) }, thousands},
}

const (
	width                                = 880
	labels                               = 170 // the readers' names end here
	panelWidth                           = 236
	barWidth                             = 160 // of the largest value: its number is beside it
	firstRow, rowHeight, barHeight, foot = 46, 30, 17, 30
)

// draw writes the charts, one for each theme.
func (r report) draw(pattern string) error {
	for _, t := range themes {
		if err := os.WriteFile(fmt.Sprintf(pattern, t.name), r.svg(t), 0o644); err != nil {
			return fmt.Errorf("drawing the chart: %w", err)
		}
	}
	return nil
}

func (r report) svg(t theme) []byte {
	var b bytes.Buffer
	text := func(x, y, size int, color, anchor, weight, s string) {
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-size="%d" fill="%s" text-anchor="%s" font-weight="%s">%s</text>`+"\n",
			x, y, size, color, anchor, weight, html.EscapeString(s))
	}
	height := firstRow + rowHeight*len(r.Peers) + foot
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" `+
		`aria-label="%s" font-family="-apple-system,BlinkMacSystemFont,Segoe UI,Noto Sans,Helvetica,Arial,sans-serif">`+
		"\n", width, height, width, height, html.EscapeString(r.label()))
	for i, p := range r.Peers {
		weight := "400"
		if p.Name == bridge {
			weight = "600"
		}
		text(labels-8, firstRow+rowHeight*i+13, 13, t.text, "end", weight, p.Title)
	}
	for n, panel := range panels {
		left := labels + n*panelWidth
		text(left, 24, 13, t.text, "start", "600", panel.title)
		largest := 0.0
		for _, p := range r.Peers {
			largest = max(largest, panel.value(p))
		}
		for i, p := range r.Peers {
			color, y := t.others, firstRow+rowHeight*i
			if p.Name == bridge {
				color = t.ours
			}
			long := max(2, int(barWidth*panel.value(p)/largest))
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" rx="2" fill="%s"/>`+"\n", left, y, long,
				barHeight, color)
			text(left+long+6, y+13, 12, t.text, "start", "400", panel.format(panel.value(p)))
		}
	}
	text(10, height-10, 11, t.faint, "start", "400", fmt.Sprintf("One feed in memory to one node of Kafka, "+
		"all on two shared, busy cores, %s. The faster of two rounds. Less CPU and memory is better.", r.Date))
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// label says in words what the chart shows.
func (r report) label() string {
	s := "Events per second:"
	for i, p := range r.Peers {
		if i > 0 {
			s += ","
		}
		s += " " + p.Title + " " + thousands(p.PerSecond)
	}
	return s
}
