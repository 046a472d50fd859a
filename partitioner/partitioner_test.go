package partitioner

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The vectors were made with Kafka's own client: testdata/Murmur2Vectors.java.
func TestMurmur2(t *testing.T) {
	text, err := os.ReadFile("testdata/murmur2_kafka_clients.tsv")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if len(lines) < 1000 {
		t.Fatalf("%d vectors", len(lines))
	}
	for _, line := range lines {
		f := strings.Split(line, "\t")
		key, err := hex.DecodeString(f[0])
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := strconv.Itoa(int(Murmur2(key, n))); got != f[2] {
			t.Errorf("Murmur2(%x, %d) = %s, want %s", key, n, got, f[2])
		}
	}
}

// CockroachDB declares these a compatibility contract.
func TestFNV1a(t *testing.T) {
	text, err := os.ReadFile("testdata/partition_reference_fnv1a.json")
	if err != nil {
		t.Fatal(err)
	}
	var ref struct {
		Partitions int `json:"num_partitions"`
		Cases      []struct {
			Key        *string
			KeyHex     *string `json:"key_hex"`
			KeyRepeat  []any   `json:"key_repeat"`
			RepeatPlus []any   `json:"key_repeat_plus"`
			Partition  int32
		}
	}
	if err := json.Unmarshal(text, &ref); err != nil {
		t.Fatal(err)
	}
	for _, c := range ref.Cases {
		var key []byte
		switch {
		case c.Key != nil:
			key = []byte(*c.Key)
		case c.KeyHex != nil:
			if key, err = hex.DecodeString(*c.KeyHex); err != nil {
				t.Fatal(err)
			}
		default:
			r := append(c.KeyRepeat, c.RepeatPlus...)
			key = []byte(strings.Repeat(r[0].(string), int(r[1].(float64))))
			if len(r) > 2 {
				key = append(key, r[2].(string)...)
			}
		}
		if got := FNV1a(key, ref.Partitions); got != c.Partition {
			t.Errorf("FNV1a(%.20q) = %d, want %d", key, got, c.Partition)
		}
	}
}

func BenchmarkMurmur2(b *testing.B) {
	key := []byte(`["photos/2026/11/21/IMG_0001.jpg"]`)
	for b.Loop() {
		Murmur2(key, 12)
	}
}
