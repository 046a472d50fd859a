package faults

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"time"
)

// refuse answers as Azure does: the code in a header and in XML behind a byte order mark.
func refuse(w http.ResponseWriter, r *http.Request, k Kind) {
	what := refusals[k]
	h := w.Header()
	h.Set("Content-Type", "application/xml")
	h.Set("Server", "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0")
	h.Set("x-ms-error-code", what.code)
	h.Set("x-ms-request-id", requestID)
	h.Set("x-ms-version", r.Header.Get("x-ms-version"))
	if k == TooManyRequests {
		h.Set("Retry-After", "1")
	}
	w.WriteHeader(what.status)
	_, _ = fmt.Fprintf(w, "\ufeff"+`<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>%s
RequestId:%s
Time:2026-01-01T00:00:00.0000000Z</Message></Error>`, what.code, what.message, requestID)
}

const requestID = "fa017000-001e-0000-0000-000000000000"

// hangUp ends the connection without a further byte: with a reset, or as if all were said.
func hangUp(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // ends it, too
	}
	if c, ok := conn.(*net.TCPConn); ok && reset {
		_ = c.SetLinger(0) // a connection that is gone already needs none
	}
	_ = conn.Close()
}

// trickle is how many bytes of a slow body come one by one.
const trickle = 8

// send writes an answer, or what k makes of its body.
func (p *Proxy) send(w http.ResponseWriter, r *http.Request, class Class, k Kind, a *answer) {
	maps.Copy(w.Header(), a.header)
	if r.Method != http.MethodHead {
		w.Header().Set("Content-Length", fmt.Sprint(len(a.body)))
	}
	w.WriteHeader(a.status)
	write := func(b []byte) bool {
		if _, err := w.Write(b); err != nil {
			return false // the client is gone
		}
		return http.NewResponseController(w).Flush() == nil
	}
	body := a.body
	if len(body) > 1 {
		switch k {
		case ResetBody, ShortBody:
			p.injected(k)
			write(body[:p.cut(len(body))])
			hangUp(w, k == ResetBody)
			return
		case StalledBody:
			p.injected(k)
			write(body[:p.cut(len(body))])
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		case SlowBody:
			p.injected(k)
			for n := min(trickle, len(body)-1); n > 0; n-- {
				if !write(body[:1]) {
					return
				}
				body = body[1:]
				select {
				case <-time.After(p.opt.Pause):
				case <-r.Context().Done():
					return
				}
			}
		}
	}
	p.sent(class, len(a.body)) // before the client knows the end, who may ask for Stats then
	write(body)
}

// sent counts a body that goes out whole.
func (p *Proxy) sent(class Class, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.Bytes[class] += int64(n)
}
