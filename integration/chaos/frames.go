package chaos

import "encoding/binary"

// frames follows the requests on a connection: each is its length, in four bytes, and begins with the key of its API.
type frames struct {
	head [6]byte
	have int   // bytes of head
	skip int64 // bytes left of the request whose head was read
}

// kinds are of requests, as bits.
type kinds uint8

const (
	ofGroup kinds = 1 << iota
	ofFetch
)

// kinds returns which requests begin in b.
func (f *frames) kinds(b []byte) (found kinds) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, int64(len(b)))
			f.skip -= n
			b = b[n:]
			continue
		}
		n := copy(f.head[f.have:], b)
		f.have += n
		b = b[n:]
		if f.have < len(f.head) {
			break
		}
		switch binary.BigEndian.Uint16(f.head[4:]) {
		case 11, 12, 13, 14, 68: // JoinGroup, Heartbeat, LeaveGroup, SyncGroup, ConsumerGroupHeartbeat
			found |= ofGroup
		case 1:
			found |= ofFetch
		}
		f.skip, f.have = int64(binary.BigEndian.Uint32(f.head[:]))-2, 0
	}
	return found
}
