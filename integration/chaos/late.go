package chaos

import (
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// late writes to a connection some time after it was asked to, in order, and takes more meanwhile: a distance, and not
// a narrow line.
type late struct {
	to    net.Conn
	by    time.Duration
	queue chan held // closed by end
	ended sync.WaitGroup
}

type held struct {
	bytes []byte // nil: close
	due   time.Time
}

func newLate(to net.Conn, by time.Duration) *late {
	l := &late{to: to, by: by, queue: make(chan held, 10_000)}
	l.ended.Go(func() {
		for h := range l.queue {
			time.Sleep(time.Until(h.due))
			if h.bytes == nil {
				closeWrite(to)
			} else if _, err := to.Write(h.bytes); err != nil { // the connection is gone: so is what is left
				continue
			}
		}
	})
	return l
}

// Write implements io.Writer.
func (l *late) Write(b []byte) (int, error) {
	if l.by == 0 {
		return l.to.Write(b)
	}
	l.queue <- held{slices.Clone(b), time.Now().Add(l.by)}
	return len(b), nil
}

// end returns when nothing is left to write.
func (l *late) end() {
	close(l.queue)
	l.ended.Wait()
}

// closeWrite ends one way of a connection.
func closeWrite(to io.Writer) {
	switch to := to.(type) {
	case *late:
		if to.by > 0 {
			to.queue <- held{due: time.Now().Add(to.by)}
			return
		}
		closeWrite(to.to)
	case *net.TCPConn:
		_ = to.CloseWrite()
	}
}
