package feedsim

import "encoding/hex"

// event is what the encoder needs of an event. Its texts are in one array, so that an event that nobody asks about
// costs no allocation, and one that is announced costs one.
type event struct {
	change change
	blob   *blob // nil: Control
	text   [idLen + timeLen + seqLen + idLen]byte
	length int64

	contentType string
	tier        uint8 // the one before a change, or the destination of an operation
	epoch       uint64
	lsn         uint64
	ticks       int64 // time, since 1970
}

const idLen, timeLen, seqLen = 36, 28, 48

func (e *event) id() []byte        { return e.text[:idLen] }
func (e *event) time() []byte      { return e.text[idLen : idLen+timeLen] }
func (e *event) sequencer() []byte { return e.text[idLen+timeLen : idLen+timeLen+seqLen] }
func (e *event) client() []byte    { return e.text[idLen+timeLen+seqLen:] }

// fill makes e the next event of the open segment.
func (f *Feed) fill(e *event, c change, b *blob) {
	seg := f.current
	f.sum.Events++
	hash := uint32(f.sum.Events)
	if b != nil {
		hash = b.hash
	}
	e.change, e.blob, e.length = c, b, f.rng.Int64N(1<<24)
	e.contentType = "application/octet-stream"
	e.ticks = seg.ticks
	if f.spec.Now == nil {
		e.ticks += seg.clock.at(seg.events, hash)
	} else {
		f.now = max(f.now, f.spec.Now().UnixNano()/100) // clocks are set back
		e.ticks += seg.clock.live(f.now-seg.ticks, seg.events, hash)
	}
	seg.events++

	// Bijective, so that no two events of a feed have the same id.
	hi := scramble(f.spec.Seed*0x9E3779B97F4A7C15 + uint64(f.sum.Events))
	lo := scramble(hi + f.spec.Seed)
	uuid(e.id(), hi, lo)
	uuid(e.client(), scramble(lo), hi^lo)
	f.stamper.stamp(e.time(), e.ticks)

	// Storage partitions have sequences of their own: a blob stays in one, and only there they compare.
	e.epoch = 0x2A8 + uint64(hash&3)*0x19B
	e.lsn = 0x58EB00 + 3*uint64(f.sum.Events)
	upper, lower := e.sequencer()[:32], e.sequencer()[32:]
	for i := range 16 {
		upper[i] = '0'
	}
	hex16(upper[16:], e.epoch, "0123456789ABCDEF") // the service mixes the cases
	hex16(lower, e.lsn, "0123456789abcdef")
}

// announce returns what a reader has to find. It copies e's texts.
func (f *Feed) announce(e *event, s *shard, offset int64, index int) Expected {
	text := string(e.text[:idLen+timeLen+seqLen])
	x := Expected{
		ID: text[:idLen], EventTime: text[idLen : idLen+timeLen], Sequencer: text[idLen+timeLen:],
		EventType: s.version.eventType(e.change), API: of[e.change].api, Segment: f.current.name,
		Shard: s.number, Chunk: s.chunk, BlockOffset: offset, Index: index,
		State: of[e.change].state, Delete: of[e.change].delete, Seq: f.sum.Events,
	}
	if e.blob != nil {
		x.Container, x.Blob, x.Key = e.blob.key[:e.blob.cut], e.blob.name(), e.blob.key
	}
	if e.change == snapshot {
		x.Snapshot = x.EventTime
	}
	return x
}

// scramble is the finalizer of SplitMix64. It is bijective.
func scramble(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func uuid(b []byte, hi, lo uint64) {
	var raw [16]byte
	for i := range 8 {
		raw[i], raw[8+i] = byte(hi>>(56-8*i)), byte(lo>>(56-8*i))
	}
	hex.Encode(b, raw[:4])
	hex.Encode(b[9:], raw[4:6])
	hex.Encode(b[14:], raw[6:8])
	hex.Encode(b[19:], raw[8:10])
	hex.Encode(b[24:], raw[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
}

func hex16(b []byte, v uint64, digits string) {
	for i := 15; i >= 0; i-- {
		b[i] = digits[v&15]
		v >>= 4
	}
}
