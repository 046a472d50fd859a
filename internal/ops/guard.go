package ops

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"slices"
	"strings"
)

// Guard protects what Handler shows. The probes are open: a kubelet knows the address of the pod and nothing else.
type Guard struct {
	// Hosts are host names that requests may use, besides addresses and names without a dot; "*" allows any name.
	// An attacker's page can make a browser send its own host name to our address, and would read the answer.
	Hosts []string
	// Token returns the secret that a request must have. Nil: none is needed. "" rejects every request.
	Token func() string
}

// Wrap returns h behind the guard.
func (g *Guard) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isProbe(r):
		case !g.host(r.Host):
			text(w, http.StatusMisdirectedRequest, "this host name is not allowed: add it to BRIDGE_HTTP_HOSTS\n")
			return
		case !g.bears(r):
			w.Header().Set("WWW-Authenticate", `Basic realm="bridge"`) // by which a browser asks for it
			text(w, http.StatusUnauthorized,
				"a token is required: Authorization: Bearer <BRIDGE_HTTP_TOKEN>, or as a password\n")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// host reports whether a request may use this host name. An attacker can't own an address, or a name without a dot.
func (g *Guard) host(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	literal := strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return !strings.Contains(name, ".") && !strings.Contains(name, ":") || net.ParseIP(literal) != nil ||
		slices.ContainsFunc(g.Hosts, func(allowed string) bool {
			return allowed == "*" || strings.EqualFold(allowed, name)
		})
}

// bears reports whether a request has the token, in a time that does not depend on how much of it is right.
func (g *Guard) bears(r *http.Request) bool {
	if g.Token == nil {
		return true
	}
	want := g.Token()
	have, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		_, have, _ = r.BasicAuth()
	}
	h, w := sha256.Sum256([]byte(have)), sha256.Sum256([]byte(want))
	return want != "" && subtle.ConstantTimeCompare(h[:], w[:]) == 1
}
