package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"blobfeed/internal/check"
	"blobfeed/internal/config"
)

// checkAll checks every bridge of the settings file.
func checkAll(ctx context.Context, stdout io.Writer, asJSON bool) error {
	bridges, err := allBridges()
	if err != nil {
		return err
	}
	bad := 0
	out := json.NewEncoder(stdout)
	out.SetEscapeHTML(false) // people read it, too
	ask := func(c *config.Config) check.Findings {
		found, err := findings(ctx, c)
		if err != nil {
			found.Add("settings", check.Failed, err.Error(), "")
		}
		if c == bridges[0] { // the process has one address
			address(ctx, &found, c)
		}
		return found
	}
	err = forAll(bridges, ask, func(c *config.Config, found check.Findings) error {
		if found.Count(check.Failed) > 0 {
			bad++
		}
		if !asJSON {
			fmt.Fprintf(stdout, "bridge %s\n", c.Name)
			return found.Text(stdout)
		}
		for _, f := range found {
			if err := out.Encode(struct {
				Bridge string `json:"bridge"`
				check.Finding
			}{c.Name, f}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return failedOf(bad, len(bridges), "would not work")
}
