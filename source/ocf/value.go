package ocf

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

var errDeep = errors.New("the value is nested too deep")

// empty reports whether a value of the type may take no bytes. Arrays of such would let a count cost nothing.
func empty(s *schema, depth int) bool {
	switch s.kind {
	case kNull:
		return true
	case kFixed:
		return s.size == 0
	case kRecord:
		if depth > maxDepth {
			return true
		}
		for _, f := range s.fields {
			if !empty(f.typ, depth+1) {
				return false
			}
		}
		return true
	}
	return false
}

// valueText reads a value as Event.Extra holds it: strings and symbols as they are, the rest as JSON.
func valueText(r *reader, s *schema) (text string, null bool, err error) {
	v, err := value(r, s, 0, true)
	if err != nil || v == nil {
		return "", true, err
	}
	if text, ok := v.(string); ok {
		return text, false, nil
	}
	b, err := json.Marshal(v) // sorts the keys
	return string(b), false, err
}

// value reads a value; if keep is false it is only passed over, and the result is meaningless.
func value(r *reader, s *schema, depth int, keep bool) (any, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	switch s.kind {
	case kNull:
		return nil, nil
	case kBoolean:
		b, err := r.take(1)
		return b == "\x01", err
	case kInt:
		return r.long()
	case kFloat:
		b, err := r.take(4)
		if err != nil || !keep {
			return nil, err
		}
		return number(float64(math.Float32frombits(binary.LittleEndian.Uint32([]byte(b)))), 32), nil
	case kDouble:
		b, err := r.take(8)
		if err != nil || !keep {
			return nil, err
		}
		return number(math.Float64frombits(binary.LittleEndian.Uint64([]byte(b))), 64), nil
	case kString:
		text, err := r.string()
		return printable(text, s.bytes), err
	case kFixed:
		text, err := r.take(s.size)
		return printable(text, true), err
	case kEnum:
		return r.symbol(s)
	case kUnion:
		i, err := r.long()
		if err != nil {
			return nil, err
		}
		if i < 0 || i >= int64(len(s.union)) {
			return nil, errUnion
		}
		return value(r, s.union[i], depth+1, keep)
	}
	return composite(r, s, depth, keep)
}

func composite(r *reader, s *schema, depth int, keep bool) (any, error) {
	switch s.kind {
	case kRecord:
		m := map[string]any{}
		for _, f := range s.fields {
			v, err := value(r, f.typ, depth+1, keep)
			if err != nil {
				return nil, err
			}
			if keep {
				m[f.name] = v
			}
		}
		return m, nil
	case kMap:
		m := map[string]any{}
		err := r.entries(false, func() error {
			k, err := r.string()
			if err != nil {
				return err
			}
			v, err := value(r, s.items, depth+1, keep)
			if keep {
				m[k] = v
			}
			return err
		})
		return m, err
	default: // kArray
		l := []any{}
		err := r.entries(empty(s.items, 0), func() error {
			v, err := value(r, s.items, depth+1, keep)
			if keep {
				l = append(l, v)
			}
			return err
		})
		return l, err
	}
}

func printable(text string, binary bool) string {
	if binary {
		return base64.StdEncoding.EncodeToString([]byte(text))
	}
	return text
}

// number keeps what JSON has no number for as text.
func number(f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, bits)
	}
	return f
}
