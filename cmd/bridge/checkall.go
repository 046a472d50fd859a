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
	shared := sharedSignatures(bridges)
	bad := 0
	out := json.NewEncoder(stdout)
	out.SetEscapeHTML(false) // people read it, too
	ask := func(c *config.Config) check.Findings {
		found, err := findings(ctx, c)
		if err != nil {
			found.Add("settings", check.Failed, err.Error(), "")
		}
		if shared[c.SourceSAS] {
			found.Add("rights", check.Warning, fmt.Sprintf("bridges of several accounts have the same signature (%s): "+
				"it holds for one, and the services of the others, or whoever adds a bridge to the file, learn it",
				c.From("SOURCE_SAS")), "set source_sas_file for each bridge, and no signature for all")
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

// sharedSignatures returns the signatures that bridges of different accounts send.
func sharedSignatures(bridges []*config.Config) map[config.Secret]bool {
	account, shared := map[config.Secret]string{}, map[config.Secret]bool{}
	for _, c := range bridges {
		if first, known := account[c.SourceSAS]; c.SourceSAS != "" && known && first != c.SourceURL {
			shared[c.SourceSAS] = true
		}
		account[c.SourceSAS] = c.SourceURL
	}
	return shared
}
