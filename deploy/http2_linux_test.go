package deploy

import (
	"crypto/tls"
	"encoding/binary"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobfeed/internal/testing/fakebroker"
)

// A storage service that speaks HTTP/2 and sends bodies of the length -1 is reported, and the program runs on.
func TestHostileLength(t *testing.T) {
	t.Parallel()
	storage := httptest.NewUnstartedServer(nil)
	storage.TLS = &tls.Config{NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12}
	storage.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": answerNegative}
	storage.StartTLS()
	defer storage.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: storage.Certificate().Raw})
	if err := os.WriteFile(authority, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, program, []string{"BRIDGE_SOURCE_URL=" + storage.URL + "/acct", "BRIDGE_SOURCE_AUTH=sas",
		"BRIDGE_SOURCE_SAS=sv=2026&sp=rl&sig=planted-signature", "BRIDGE_HTTP_ADDR=off", "SSL_CERT_FILE=" + authority,
		"BRIDGE_KAFKA_BROKERS=" + fakebroker.New(t).ListenAddrs()[0]}, "run")
	p.until(t, "the error", func() bool { return strings.Contains(p.log.String(), "answered with the length -1") })
	p.within(t, attackLimit)
	p.stop(t)
}

// answerNegative answers each request of a connection with the header Content-Length: -1 and a body. Go's own server
// drops such a header.
func answerNegative(_ *http.Server, conn *tls.Conn, _ http.Handler) {
	const data, headers, settings = 0, 1, 4 // types of frames
	write := func(kind, flags byte, stream uint32, payload []byte) {
		frame := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
		frame = binary.BigEndian.AppendUint32(append(frame, flags), stream)
		_, _ = conn.Write(append(frame, payload...)) // fails if the client is gone
	}
	var fields []byte
	for _, field := range [][2]string{
		{":status", "206"}, {"content-length", "-1"}, {"content-range", "bytes 0-9/10"}, {"etag", "x"},
	} {
		fields = append(append(fields, 0, byte(len(field[0]))), field[0]...)
		fields = append(append(fields, byte(len(field[1]))), field[1]...)
	}
	_, _ = io.CopyN(io.Discard, conn, 24) // the preface
	write(settings, 0, 0, nil)
	for {
		var head [9]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head[:])>>8))
		stream := binary.BigEndian.Uint32(head[5:])
		switch {
		case head[3] == headers:
			write(headers, 4, stream, fields)            // the end of the headers
			write(data, 1, stream, []byte("0123456789")) // the end of the stream
		case head[3] == settings && head[4] == 0:
			write(settings, 1, 0, nil) // acknowledged
		}
	}
}
