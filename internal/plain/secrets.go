package plain

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// hiddenSecrets are what no text may show.
var hiddenSecrets struct {
	sync.Mutex
	known    map[string]bool
	order    []string          // oldest first
	replacer *strings.Replacer // nil: to be made
}

const (
	// shortestSecret is the length from which a text is replaced wherever it occurs. A shorter one is a part of words.
	shortestSecret = 6
	// longestSecret is the length up to which a secret is found at the end of a text that is cut. Tokens have 2 KiB.
	longestSecret = 16 << 10
	// maxSecrets bounds the memory. Tokens are renewed every hour.
	maxSecrets = 1 << 14
	// inPlace is what stands where a secret was.
	inPlace = "[secret]"
)

// Hide makes Clip and Line replace a secret, and what of it or in place of it a server may repeat: parts of connection
// strings and signatures, and other spellings.
func Hide(secrets ...string) {
	hiddenSecrets.Lock()
	defer hiddenSecrets.Unlock()
	for _, s := range secrets {
		for _, form := range forms(s) {
			if len(form) < shortestSecret || hiddenSecrets.known[form] {
				continue
			}
			if hiddenSecrets.known == nil {
				hiddenSecrets.known = map[string]bool{}
			}
			hiddenSecrets.known[form], hiddenSecrets.replacer = true, nil
			if hiddenSecrets.order = append(hiddenSecrets.order, form); len(hiddenSecrets.order) > maxSecrets {
				delete(hiddenSecrets.known, hiddenSecrets.order[0])
				hiddenSecrets.order = hiddenSecrets.order[1:]
			}
		}
	}
}

// forms returns what of a secret is secret, in the spellings of headers, URLs and forms.
func forms(s string) (all []string) {
	parts := []string{s}
	for _, field := range strings.FieldsFunc(s, func(r rune) bool { return r == ';' || r == '&' || r == '?' }) {
		switch name, value, _ := strings.Cut(field, "="); strings.ToLower(name) {
		case "sig", "accountkey", "sharedaccesskey":
			parts = append(parts, value)
			if plain, err := url.QueryUnescape(value); err == nil && strings.Contains(value, "%") {
				parts = append(parts, plain)
			}
		}
	}
	for _, p := range parts {
		encoded := base64.StdEncoding.EncodeToString([]byte(p))
		all = append(all, p, url.QueryEscape(p), url.PathEscape(p), encoded,
			strings.TrimRight(p, "="), strings.TrimRight(encoded, "=")) // not everybody writes the padding
	}
	return all
}

// Authorized makes Clip and Line replace the value of an Authorization header that was sent. The signature of a request
// is none that another one could use.
func Authorized(header string) {
	scheme, value, _ := strings.Cut(header, " ")
	if strings.EqualFold(scheme, "Basic") || strings.EqualFold(scheme, "Bearer") {
		Hide(value)
	}
	if pair, err := base64.StdEncoding.DecodeString(value); err == nil && strings.EqualFold(scheme, "Basic") {
		_, password, _ := strings.Cut(string(pair), ":")
		Hide(password)
	}
}

// credentials are those that nobody has told Hide of, by what stands before them.
var credentials = regexp.MustCompile(`(?i)(\b(?:basic|bearer|sharedkey(?:lite)?) +|\bsig=)[A-Za-z0-9+/_=.:~%-]{8,}`)

// redacted returns s without secrets.
func redacted(s string) string {
	hiddenSecrets.Lock()
	if hiddenSecrets.replacer == nil {
		var pairs []string
		for _, secret := range hiddenSecrets.order {
			pairs = append(pairs, secret, inPlace)
		}
		hiddenSecrets.replacer = strings.NewReplacer(pairs...)
	}
	r := hiddenSecrets.replacer
	hiddenSecrets.Unlock()
	return credentials.ReplaceAllString(r.Replace(s), "${1}"+inPlace)
}

var code = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// Code returns the code of an error as a server gives it, or "" if that is none: it could be anything.
func Code(s string) string {
	if !code.MatchString(s) {
		return ""
	}
	return redacted(s)
}
