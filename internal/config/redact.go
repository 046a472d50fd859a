package config

import (
	"regexp"
	"slices"
	"strings"
)

// pasted finds what holds a secret wherever it stands: connection strings and shared access signatures.
var pasted = regexp.MustCompile(`(?i)(^|[;?&])\s*(AccountKey|SharedAccessKey|SharedAccessSignature|sig)=`)

const hidden = "(hidden)"

// redact hides what was pasted into a setting that is shown, and no part of it: a connection string, the query of a URL,
// the user in front of a host. Most of these values are rejected, but config shows them with their problems.
func redact(name, text string) string {
	if strings.HasPrefix(text, "file:///") {
		return text
	}
	if name == "KAFKA_SASL_TOKENS" && !strings.Contains(text, "://") && text != "" && !slices.Contains(entra, text) {
		return hidden // a token, although the setting is where tokens come from
	}
	rest, scheme := text, ""
	if i := strings.Index(text, "://"); i >= 0 {
		scheme, rest = text[:i+3], text[i+3:]
	}
	if scheme != "" || strings.HasSuffix(name, "_URL") || strings.HasSuffix(name, "_BROKERS") {
		var query string
		rest, query, _ = strings.Cut(rest, "?")
		// The last one: a password may hold anything, and is not always escaped.
		if i := strings.LastIndex(rest, "@"); i >= 0 {
			rest = hidden + rest[i:]
		}
		if query != "" {
			rest += "?" + hidden
		}
	}
	if pasted.MatchString(scheme + rest) {
		return hidden
	}
	return scheme + rest
}
