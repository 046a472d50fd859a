package config

import (
	"fmt"
	"strings"
	"testing"
)

// Two bridges whose records may go to one topic are rejected, whatever names the account, unless both share topics.
func TestFleetTopicsCoincide(t *testing.T) {
	at := func(url string) string { return fmt.Sprintf("source_url: %q, topic: \"x.{account}\"", url) }
	conn := func(account, endpoint string) string {
		return `source_auth: connection_string, topic: "x.{account}", source_connection_string: "AccountName=` +
			account + ";AccountKey=a2V5;BlobEndpoint=" + endpoint + `"`
	}
	dirA, dirB, blob := at("file:///a"), at("file:///b"), at("https://acct.blob.core.windows.net")
	const (
		shared = ", topic_shared: true"
		same   = "writes to the same topic x."
		may    = "may write to the same topic"
		is     = ", source_account: "
	)
	for name, tc := range map[string]struct{ a, b, want string }{
		"directories":                    {dirA, dirB, may},
		"a directory and an account":     {dirA, blob, may},
		"one directory is named":         {dirA, dirB + is + "b", may},
		"named directories":              {dirA + is + "a", dirB + is + "b", ""},
		"copies of one account":          {dirA + is + "acct", dirB + is + "ACCT", same},
		"a copy, and the account":        {dirA + is + "acct", blob, same},
		"another template":               {dirA, `source_url: "file:///b", topic: "y.{account}"`, ""},
		"shared directories":             {dirA + shared, dirB + shared, ""},
		"only one shares":                {dirA + shared, dirB, may},
		"one directory twice":            {dirA + shared, dirA + shared, "reads the same feed"},
		"a literal topic":                {blob, `source_url: "file:///b", topic: x.acct`, same},
		"another endpoint":               {blob, at("https://acct.dfs.core.windows.net"), same},
		"another account":                {blob, at("https://other.blob.core.windows.net"), ""},
		"the secondary":                  {blob, at("https://acct-secondary.blob.core.windows.net"), same},
		"capitals, and the container":    {blob, at("https://ACCT.blob.core.windows.net/$blobchangefeed"), same},
		"an emulator's path":             {blob, at("http://h:1/acct") + ", source_auth: anonymous", same},
		"domains of their own":           {at("https://files.a.com"), at("https://files.b.com"), ""},
		"connection strings of one":      {conn("acct", "https://h/acct"), conn("acct", "https://g/acct"), same},
		"connection strings of two":      {conn("acct", "https://h/acct"), conn("other", "https://h/other"), ""},
		"a connection string, and a URL": {conn("acct", "https://h/acct"), blob, same},
	} {
		f, err := fleet(t, nil, "kafka: {brokers: [a:1]}\nbridges:\n  a: {"+tc.a+"}\n  b: {"+tc.b+"}\n")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []string{"a", "b"} {
			text := ""
			if p := f.Rejected[c]; len(p) > 0 {
				text = p[0].Error()
			}
			if (text != "") != (tc.want != "") || !strings.Contains(text, tc.want) {
				t.Errorf("%s: bridge %s: %q, want %q", name, c, text, tc.want)
			}
		}
	}
}
