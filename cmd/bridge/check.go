package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"blobfeed/internal/check"
	"blobfeed/internal/config"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
)

func checkVerb(ctx context.Context, env config.Env, args []string, stdout, _ io.Writer) error {
	fs := flags(env, "check", "[--all] [--output text|json]", stdout, func(w io.Writer) {
		fmt.Fprint(w, "\nTries what run needs of the feed and of Kafka, writes nothing, and says what to do. "+
			"Exit code 1 if run would not work.\n")
	})
	all := fs.Bool("all", false, "check every bridge of the settings file")
	asJSON, err := parseOutput(fs, args, "one document per line")
	if err != nil {
		return err
	}
	if *all {
		return checkAll(ctx, env, stdout, asJSON)
	}
	c, err := load(env.Load(false))
	if err != nil {
		return err
	}
	found, err := findings(ctx, c)
	if err != nil {
		return &settingsError{err}
	}
	address(ctx, &found, c)
	show := found.Text
	if asJSON {
		show = found.JSON
	}
	if err := show(stdout); err != nil {
		return err
	}
	if failed := found.Count(check.Failed); failed > 0 {
		return fmt.Errorf("%d of %s failed", failed, plain.Count(len(found), "check"))
	}
	return nil
}

// checkAll checks every bridge of the settings file.
func checkAll(ctx context.Context, env config.Env, stdout io.Writer, asJSON bool) error {
	f, bridges, err := allBridges(env)
	if err != nil {
		return err
	}
	shared := sharedSignatures(f.Bridges)
	bad := 0
	out := json.NewEncoder(stdout)
	out.SetEscapeHTML(false) // people read it, too
	ask := func(c *config.Config) (found check.Findings) {
		if problems := f.Rejected[c.Name]; problems != nil {
			text, do := plain.SplitRemedy(errors.Join(problems...))
			found.Add("settings", check.Failed, strings.ReplaceAll(text, "\n", "; "), do)
			return found
		}
		found, err := findings(ctx, c)
		if err != nil {
			found.Add("settings", check.Failed, err.Error(), "")
		}
		if shared[c.SourceSAS] {
			found.Add("rights", check.Warning, fmt.Sprintf("bridges of several accounts have the same signature (%s): "+
				"it holds for one, and the services of the others, or whoever adds a bridge to the file, learn it",
				c.From("SOURCE_SAS")), "set source_sas_file for each bridge, and no signature for all")
		}
		if f.Bridges[0] == c { // the process has one address
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
	if n := len(f.Rejected); n > 0 && err == nil {
		err = &settingsError{failedOf(n, len(bridges), "have invalid settings")}
	}
	return cmp.Or(err, failedOf(bad, len(bridges), "would not work"))
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

// findings checks a bridge. An error is one of the settings.
func findings(ctx context.Context, c *config.Config) (check.Findings, error) {
	b, err := surroundings(c)
	if err != nil {
		return nil, err
	}
	return check.Run(ctx, b, time.Now())
}

// address adds whether run can serve HTTP. An instance that runs has the address already.
func address(ctx context.Context, found *check.Findings, c *config.Config) {
	l, must, err := listen(c, true)
	if err == nil {
		if l != nil {
			_ = l.Close()
			found.Add("http", check.OK, "run can serve HTTP at "+c.HTTPAddr, "")
		}
		return
	}
	status := check.Warning // run serves no HTTP then
	if must {
		status = check.Failed
	}
	const other = "an instance serves HTTP there; another one on this machine needs another address: "
	if code, _, aerr := askLocal(ctx, c, "/healthz", time.Second); aerr == nil && code == http.StatusOK {
		found.Add("http", check.Warning, err.Error(), other+freeAddress)
		return
	}
	found.Add("http", status, err.Error(), freeAddress)
}

// surroundings returns the bridge of the settings, for checks.
func surroundings(c *config.Config) (*check.Bridge, error) {
	hurried := *c
	hurried.Tuning.StorageRetries = 2
	c = &hurried
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		return nil, err
	}
	client, err := setup.Kafka(c, c.Name+"-check", 1)
	if err != nil {
		return nil, err
	}
	record, problems := setup.Record(c)
	if len(problems) > 0 {
		return nil, problems[0]
	}
	b := &check.Bridge{
		Options: &o, Record: record, Kafka: &client, Insecure: c.Insecure(), LongestTopic: setup.LongestTopic(c),
	}
	var copied bool
	if b.Dir, copied = strings.CutPrefix(c.SourceURL, "file://"); !copied {
		azure := setup.Azure(c)
		b.Azure, b.Dir = &azure, ""
	}
	b.Registry, err = setup.Registry(c, setup.Observe{})
	return b, err
}
