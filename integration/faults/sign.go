package faults

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// sign puts a Shared Key signature onto a request without a body, in place of its own.
func sign(r *http.Request, account, key string) error {
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return fmt.Errorf("decoding the account's key: %w", err)
	}
	// Twelve lines: the method, and headers of which a listing has none, for the date is in x-ms-date.
	text := r.Method + strings.Repeat("\n", 12)
	// net/http spells them all alike, so the order is that in lower case
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			text += lower + ":" + strings.Join(r.Header[name], ",") + "\n"
		}
	}
	text += "/" + account + r.URL.EscapedPath()
	query := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		text += "\n" + strings.ToLower(name) + ":" + strings.Join(slices.Sorted(slices.Values(query[name])), ",")
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	r.Header.Set("Authorization", "SharedKey "+account+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}
