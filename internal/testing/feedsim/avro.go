package feedsim

func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func appendLong(b []byte, v int64) []byte {
	u := zigzag(v)
	for ; u >= 0x80; u >>= 7 {
		b = append(b, byte(u)|0x80)
	}
	return append(b, byte(u))
}

// longLen is the length of the varints that the service writes for a block's count and size: always ten bytes, however
// small the number. Here it means that a block can be written in place, and its count and size filled in at its end.
const longLen = 10

func putLong(b []byte, v int64) {
	u := zigzag(v)
	for i := range longLen - 1 {
		b[i] = byte(u) | 0x80
		u >>= 7
	}
	b[longLen-1] = byte(u)
}

type text interface{ ~string | ~[]byte }

func appendString[T text](b []byte, s T) []byte { return append(appendLong(b, int64(len(s))), s...) }

// appendSome appends the second branch of a union with null.
func appendSome[T text](b []byte, s T) []byte { return appendString(append(b, 2), s) }

// appendMap appends a map of strings, in the second branch of a union with null.
func appendMap(b []byte, pairs ...string) []byte {
	b = appendLong(append(b, 2), int64(len(pairs)/2))
	for _, s := range pairs {
		b = appendString(b, s)
	}
	return append(b, 0)
}
