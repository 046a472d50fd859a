package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// report is what results.json holds.
type report struct {
	Date       string   `json:"date"`
	EventBytes int64    `json:"event_bytes"`
	Peers      []result `json:"peers"`
}

// result is the fastest round of a reader.
type result struct {
	Name       string   `json:"name"`
	Title      string   `json:"title"`
	Libraries  []string `json:"libraries,omitempty"`
	Runtime    string   `json:"runtime"`
	Events     int      `json:"events"` // in the segments that it should read
	Delivered  int      `json:"delivered"`
	Duplicates int      `json:"duplicates"`
	PerSecond  float64  `json:"events_per_second"`
	CPU        float64  `json:"cpu_microseconds_per_event"`
	MB         int64    `json:"peak_megabytes"`
}

func readReport(file string) (r report, err error) {
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return r, fmt.Errorf("reading the results: %w", err)
	}
	return r, nil
}

func (r report) write(file string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// print writes the rows of the table in docs/comparison.md.
func (r report) print(w io.Writer) {
	for _, p := range r.Peers {
		fmt.Fprintf(w, "| %s | %s | %.1f | %d |\n", p.Title, thousands(p.PerSecond), p.CPU, p.MB)
	}
}

// thousands writes a number as people read it: 12,345.
func thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
