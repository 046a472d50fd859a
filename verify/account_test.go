package verify

import "testing"

func TestAccount(t *testing.T) {
	const source = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Storage/storageAccounts/"
	for name, c := range map[string]struct {
		source, value, account string
	}{
		"header":           {source + "alpha", `{"after":{"account":"bravo"}}`, "alpha"},
		"case, and a rest": {source + "Alpha/blobServices/default", "", "alpha"},
		"wrapped":          {"", `{"after":{"account":"alpha","path":"c/b"}}`, "alpha"},
		"row":              {"", `{"account":"alpha","path":"c/b","__crdb__":{"updated":"1.0000000000"}}`, "alpha"},
		"enriched":         {"", `{"op":"d","source":{"account":"alpha"}}`, "alpha"},
		"of no account":    {"urn:alpha", `{"after":null}`, ""},
		"tombstone":        {"", "", ""},
		"garbage":          {"", `{"hello":"world"}`, ""},
	} {
		r := Record{Key: []byte("k"), Value: []byte(c.value)}
		if c.source != "" {
			r.Headers = []Header{{"ce_source", []byte(c.source)}}
		}
		if have := r.Account(); have != c.account {
			t.Errorf("%s: account %q, want %q", name, have, c.account)
		}
	}
}
