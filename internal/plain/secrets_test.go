package plain

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// A server repeats what it was sent, as it was sent or otherwise: no text shows it.
func TestSecretsAreReplaced(t *testing.T) {
	const password, signature = "pl4nted/pass word", "cGxhbnRlZA%3D%3D"
	Hide(password, "?sv=2024&sp=rl&sig="+signature, "AccountName=me;AccountKey=a2V5a2V5a2V5;X=y", "short", "")
	Authorized("Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+password)))
	Authorized("Bearer eyJ-planted-token")
	Authorized("SharedKey me:c2lnbmF0dXJl")
	for text, want := range map[string]string{
		"wrong " + password + "!":                                        "wrong [secret]!",
		"wrong pl4nted%2Fpass+word":                                      "wrong [secret]",
		"sent bWU6cGw0bnRlZC9wYXNzIHdvcmQ=, bWU6cGw0bnRlZC9wYXNzIHdvcmQ": "sent [secret], [secret]",
		"at https://x/y?sv=1&sig=other-signature&x=1":                    "at https://x/y?sv=1&sig=[secret]&x=1",
		"bad signature cGxhbnRlZA==":                                     "bad signature [secret]",
		"key a2V5a2V5a2V5":                                               "key [secret]",
		"token eyJ-planted-token":                                        "token [secret]",
		"Authorization: Bearer of-somebody-else":                         "Authorization: Bearer [secret]",
		"authorization: basic b2Ygc29tZWJvZHkgZWxzZQ==":                  "authorization: basic [secret]",
		"a bearer of news":                                               "a bearer of news",
		"in short, x":                                                    "in short, x",
	} {
		if got := Line(text); got != want {
			t.Errorf("Line: %q, want %q", got, want)
		}
		if got := Clip(text); got != want {
			t.Errorf("Clip: %q, want %q", got, want)
		}
	}
	cut := strings.Repeat("x", MaxText-4) + password // no part of it is left at the end
	if got := Clip(cut); !strings.HasSuffix(got, "xx[sec… (4 bytes more)") {
		t.Errorf("%q", got[MaxText-10:])
	}
}

// A code is a word of letters and digits, and nothing else.
func TestCode(t *testing.T) {
	for text, want := range map[string]string{
		"AuthenticationFailed": "AuthenticationFailed", "": "", "a b": "", "a\n": "", "\x1b[2J": "", "Ä": "", "a-b": "",
		strings.Repeat("a", 64): strings.Repeat("a", 64), strings.Repeat("a", 65): "",
	} {
		if got := Code(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
	Hide("Planted0Password")
	if got := Code("Planted0Password"); got != inPlace {
		t.Errorf("%q", got)
	}
}

// Secrets that are renewed forever do not fill the memory.
func TestSecretsAreBounded(t *testing.T) {
	for i := range 2 * maxSecrets {
		Hide(fmt.Sprintf("token-%d", i))
	}
	if n := len(hiddenSecrets.order); n > maxSecrets || len(hiddenSecrets.known) != n {
		t.Errorf("%d", n)
	}
	if text := Line(fmt.Sprintf("token-%d", 2*maxSecrets-1)); text != inPlace {
		t.Errorf("%q", text)
	}
}
