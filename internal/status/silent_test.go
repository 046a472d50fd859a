package status

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Brokers that accept connections and do not answer are an error within seconds, which names them.
func TestSilentBrokers(t *testing.T) {
	defer func(d time.Duration) { patience = d }(patience)
	patience = 500 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			defer c.Close() // until the end
		}
	}()
	brokers := []string{l.Addr().String()}
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	r := Reader{Name: "b", Topic: "b.offsets", Brokers: brokers, Admin: kadm.NewClient(cl)}
	began := time.Now()
	_, err = r.State(t.Context())
	want := "the brokers did not answer in time (500ms): " + brokers[0]
	if !errors.Is(err, ErrSilent) || !strings.Contains(err.Error(), want) || time.Since(began) > 5*time.Second {
		t.Errorf("after %s: %v, want %s", time.Since(began), err, want)
	}
}
