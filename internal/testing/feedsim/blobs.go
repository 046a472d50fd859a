package feedsim

import (
	"fmt"
	"hash/fnv"
)

// odd are names that break readers which decode or split them.
var odd = []string{
	"a b & é-%d.jpg", "100%%25/x#y+z-%d", "x/blobs/y-%d", "/leading-%d", `quo"te\back-%d`, "😀/emoji-%d.png",
	"trailing-%d/", "?q=%d&amp;<x>",
}

// oddEvery is how many blobs share one odd name.
const oddEvery = 50

type life uint8

const (
	absent  life = iota // never was
	present             // exists
	gone                // was deleted
)

type blob struct {
	key       string // container/blob
	container int    // index
	cut       int    // length of the container's name
	hash      uint32
	life      life
	tier      uint8 // index into the version's tiers; 0: inferred, null in the feed
}

// name returns the blob's name without its container.
func (b *blob) name() string { return b.key[b.cut+1:] }

// population are the blobs of an account. They are made when first used: a feed over millions of blobs may touch few.
type population struct {
	containers []string
	versions   []string // of the containers
	blobs      []blob
}

func newPopulation(containers []string, blobs int) *population {
	p := &population{containers: containers, blobs: make([]blob, blobs)}
	for i := range containers {
		p.versions = append(p.versions, containerVersion(i))
	}
	return p
}

func (p *population) at(i int) *blob {
	b := &p.blobs[i]
	if b.key != "" {
		return b
	}
	b.container = i % len(p.containers)
	name := fmt.Sprintf("dir%03d/file-%06d.bin", i%128, i)
	if i%oddEvery == 7 {
		name = fmt.Sprintf(odd[i/oddEvery%len(odd)], i)
	}
	b.named(p.containers[b.container], name)
	return b
}

// named sets what follows from the name.
func (b *blob) named(container, name string) {
	b.key, b.cut = container+"/"+name, len(container)
	h := fnv.New32a()
	_, _ = h.Write([]byte(b.key)) // never fails
	b.hash = h.Sum32()
}

// containerVersion is the version of the i-th container.
func containerVersion(i int) string { return fmt.Sprintf("%016X", 0x01D8FF7A1B2C3D4E+uint64(i)*0x1F3) }
