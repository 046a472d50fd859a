//go:build integration

package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"slices"
	"testing"
)

// shrink returns a picture of a page with the 256 colors that it has most of, which is a third of the bytes. Those of
// areas come first: the keys of a chart are small, and the edges of letters are many.
func shrink(t *testing.T, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	from, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	bounds := from.Bounds()
	rgba := image.NewRGBA(bounds)
	draw.Draw(rgba, bounds, from, bounds.Min, draw.Src)
	count := map[color.RGBA]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := rgba.RGBAAt(x, y)
			if count[c]++; c == rgba.RGBAAt(x-1, y) && c == rgba.RGBAAt(x, y-1) {
				count[c] += 1000
			}
		}
	}
	colors := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) })
	var palette color.Palette
	for _, c := range colors[:min(256, len(colors))] {
		palette = append(palette, c)
	}
	to, index := image.NewPaletted(bounds, palette), map[color.RGBA]uint8{}
	for _, c := range colors {
		index[c] = uint8(palette.Index(c))
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			to.SetColorIndex(x, y, index[rgba.RGBAAt(x, y)])
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
