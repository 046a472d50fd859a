package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"blobfeed/internal/config"
)

// effectiveFleet prints the settings of all bridges that have no problems, and then the problems.
func effectiveFleet(f *config.Fleet, err error, shape string, stdout io.Writer) error {
	if err != nil {
		return &settingsError{fmt.Errorf("settings:\n%w", err)}
	}
	switch shape {
	case "text":
		err = fleetText(f, stdout)
	case "json":
		err = fleetJSON(f, stdout)
	default:
		return &usageError{fmt.Errorf("--output %s: choose one of the bridges of %s with BRIDGE_NAME", shape, f.Path)}
	}
	if err != nil {
		return err
	}
	if problems := f.Err(); problems != nil {
		return &settingsError{fmt.Errorf("settings:\n%w", problems)}
	}
	return nil
}

// fleetText prints the common settings, and of each bridge those that differ from them.
func fleetText(f *config.Fleet, stdout io.Writer) error {
	tw := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	row := func(e config.Effective) { fmt.Fprintf(tw, "%s\t%s\t%s\n", e.Name, cmp.Or(e.Value, "-"), e.From) }
	common := f.Common.Effective()
	for _, e := range common {
		if e.Name != config.Prefix+"_NAME" {
			row(e)
		}
	}
	for _, c := range f.Bridges {
		fmt.Fprintf(tw, "\nbridge %s\n", c.Name)
		for i, e := range c.Effective() {
			if e.Value != common[i].Value || e.From != common[i].From {
				row(e)
			}
		}
	}
	return tw.Flush()
}

// fleetJSON prints all settings of each bridge.
func fleetJSON(f *config.Fleet, stdout io.Writer) error {
	out := json.NewEncoder(stdout)
	for _, c := range f.Bridges {
		for _, e := range c.Effective() {
			if err := out.Encode(struct {
				Bridge string `json:"bridge"`
				config.Effective
			}{c.Name, e}); err != nil {
				return err
			}
		}
	}
	return nil
}
