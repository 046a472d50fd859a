package listing

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"blobfeed/internal/testing/ceiling"
	"blobfeed/source/inventory"
)

const head = "\ufeff" + `<?xml version="1.0" encoding="utf-8"?>` +
	`<EnumerationResults ServiceEndpoint="https://a/" ContainerName="c">` +
	`<Prefix>p</Prefix><MaxResults>5000</MaxResults><Blobs>`

const tail = `</EnumerationResults>`

// entry is a line as Azure writes it.
const entry = `<Blob><Name>%s</Name><Properties><Creation-Time>Mon, 01 Jun 2020 19:14:01 GMT</Creation-Time>` +
	`<Last-Modified>Mon, 01 Jun 2020 19:39:%02d GMT</Last-Modified><Etag>0x8D80663879EDA2B</Etag>` +
	`<Content-Length>23562</Content-Length><Content-Type>application/octet-stream</Content-Type><Content-Encoding />` +
	`<Content-Language /><Content-CRC64 /><Content-MD5>1B2M2Y8AsgTpgAmY7PhCfg==</Content-MD5><Cache-Control />` +
	`<Content-Disposition /><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier>` +
	`<AccessTierInferred>true</AccessTierInferred>` +
	`<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>` +
	`<ServerEncrypted>true</ServerEncrypted></Properties><OrMetadata /></Blob>`

func page(blobs int) []byte {
	b := []byte(head)
	for i := range blobs {
		b = fmt.Appendf(b, entry, fmt.Sprintf("dir%03d/file-%06d.parquet", i%100, i), i%60)
	}
	return append(b, `</Blobs><NextMarker>2!96!x</NextMarker></EnumerationResults>`...)
}

// oracle decodes with encoding/xml.
func oracle(doc []byte) (blobs []inventory.Blob, marker string, err error) {
	var d struct {
		XMLName xml.Name `xml:"EnumerationResults"`
		Blobs   *struct {
			Blob []struct {
				Name struct {
					Encoded string `xml:"Encoded,attr"`
					Text    string `xml:",chardata"`
				}
				VersionID                           string `xml:"VersionId"`
				Snapshot, Deleted, IsCurrentVersion string
				Properties                          struct {
					ETag        string `xml:"Etag"`
					Length      int64  `xml:"Content-Length"`
					ContentType string `xml:"Content-Type"`
					Modified    string `xml:"Last-Modified"`
					BlobType    string
					AccessTier  string
					Inferred    string `xml:"AccessTierInferred"`
				}
			}
		}
		NextMarker string
	}
	if err := xml.Unmarshal(bytes.TrimPrefix(doc, []byte("\ufeff")), &d); err != nil {
		return nil, "", err
	}
	if d.Blobs == nil {
		return nil, "", errors.New("no listing")
	}
	for _, b := range d.Blobs.Blob {
		if b.Name.Encoded == "true" {
			if b.Name.Text, err = url.PathUnescape(b.Name.Text); err != nil {
				return nil, "", err
			}
		}
		if b.Snapshot != "" || b.Deleted == "true" || b.IsCurrentVersion == "false" {
			continue
		}
		p := b.Properties
		one := inventory.Blob{Name: b.Name.Text, ETag: strings.Trim(p.ETag, `"`), ContentType: p.ContentType,
			BlobType: p.BlobType, Tier: p.AccessTier, Version: b.VersionID, Length: p.Length}
		if p.Modified != "" {
			if one.Modified, err = time.Parse(time.RFC1123, p.Modified); err != nil {
				return nil, "", err
			}
			one.Modified = one.Modified.UTC()
		}
		if p.Inferred == "true" {
			one.Tier = ""
		}
		blobs = append(blobs, one)
	}
	return blobs, d.NextMarker, nil
}

// decoded returns what Decode returns of the current blobs.
func decoded(r io.Reader) (blobs []inventory.Blob, marker string, err error) {
	p, err := Decode(r, false)
	if err != nil {
		return nil, "", err
	}
	return p.Blobs, p.Marker, nil
}

// same compares Decode, with readers that return the document in pieces of any size, with the oracle.
func same(t *testing.T, doc []byte) {
	t.Helper()
	want, wantMarker, err := oracle(doc)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]io.Reader{
		"at once":      bytes.NewReader(doc),
		"by bytes":     iotest.OneByteReader(bytes.NewReader(doc)),
		"with its end": iotest.DataErrReader(bytes.NewReader(doc)),
	} {
		got, marker, err := decoded(r)
		if err != nil || marker != wantMarker || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %+v, %q, %v\nwant %+v, %q", name, got, marker, err, want, wantMarker)
		}
	}
}

func TestDecode(t *testing.T) {
	real, err := os.ReadFile("testdata/chunks.xml")
	if err != nil {
		t.Fatal(err)
	}
	same(t, real)
	same(t, page(3))
	for _, blob := range []string{
		`<Name>a&amp;b&lt;c&gt;&quot;&apos;&#65;&#x1F600;</Name>`, // entities
		`<Name Encoded="true">a%ef%bf%bfb+c</Name>`, `<Name  Encoded = 'true' x="/>" >%41</Name>`,
		`<Name Encoded="false">100%</Name>`, `<Name>a<![CDATA[<b>&amp;]]>c<!-- <Name>no</Name> --></Name>`,
		"<Name>two\r\nlines\rmore</Name>", `<Name> spaces </Name>`, `<Name>😀/é</Name>`,
		`<Name>a</Name><Unknown a="b>"><Name>no</Name><Blob/></Unknown>`, "\n\t<Name >a</Name >\n",
		`<Name>a</Name><Properties><Etag>"0x1"</Etag><AccessTier>Archive</AccessTier></Properties>`,
		`<Name>a</Name><Properties><Etag>&quot;0x1&quot;</Etag><AccessTier>P40</AccessTier></Properties>`,
		`<Name>a</Name><Properties/><Snapshot>2020-01-01T00:00:00.0000000Z</Snapshot>`, `<Name>a</Name><Snapshot/>`,
		`<Name>a</Name><VersionId>2020</VersionId><IsCurrentVersion>true</IsCurrentVersion>`,
		`<Name>a</Name><VersionId>2020</VersionId><IsCurrentVersion>false</IsCurrentVersion>`,
		`<Name>a</Name><Deleted>true</Deleted>`, `<Name>a</Name><Deleted>false</Deleted>`,
		`<Name>` + strings.Repeat("&amp;", 100_000) + `</Name>`,
	} {
		same(t, []byte(head+`<Blob>`+blob+`</Blob><BlobPrefix><Name>p/</Name></BlobPrefix></Blobs><NextMarker/>`+tail))
	}
	same(t, []byte(`<EnumerationResults><Blobs/><NextMarker>a&amp;b</NextMarker></EnumerationResults>`))
}

func blob(content string) string { return head + `<Blob>` + content + `</Blob></Blobs>` }

func property(element string) string { return head + `<Blob><Properties>` + element }

// Damaged answers are errors, and never shorter listings.
func TestDamage(t *testing.T) {
	whole := page(2)
	for i := range whole {
		if i < len(whole)-1 {
			if blobs, _, err := decoded(bytes.NewReader(whole[:i])); err == nil {
				t.Fatalf("cut at %d: %d blobs", i, len(blobs))
			}
		}
	}
	for doc, want := range map[string]string{
		"":              "not a listing",
		"hello":         "not a listing",
		"<html></html>": "not a listing",
		"<EnumerationResults></EnumerationResults>":                              "not a listing",
		`<!DOCTYPE x><EnumerationResults>`:                                       "declaration",
		head + `<Blob></Blob></Blobs></EnumerationResults>`:                      "without a name",
		head + `<Blob><Name/></Blob></Blobs></EnumerationResults>`:               "without a name",
		head + `<Blob><Name>a</Blob></Name></Blobs>`:                             "unexpected </Blob>",
		blob(`<Name>a<b/></Name>`):                                               "unexpected <b>",
		blob(`<Name>&bogus;</Name>`):                                             "invalid entity",
		blob(`<Name>&#xD800;</Name>`):                                            "invalid entity",
		blob(`<Name>a&</Name>`):                                                  "invalid entity",
		head + "<Blob><Name>a\xff</Name></Blob></Blobs>":                         "not UTF-8",
		blob(`<Name Encoded="true">%ff</Name>`):                                  "not UTF-8",
		blob(`<Name Encoded="true">%4</Name>`):                                   "not encoded correctly",
		blob(`<Name Encoded=true>a</Name>`):                                      "invalid attribute",
		head + `<Blob><Name>a</Name><Properties><Content-Length>-5<`:             "unexpected EOF",
		property(`<Content-Length>-5</Content-Length>`):                          "invalid Content-Length",
		property(`<Last-Modified>now</Last-Modified>`):                           "invalid Last-Modified",
		property(`<Last-Modified></Last-Modified>`):                              "invalid Last-Modified",
		string(page(inventory.MaxPage + 1)):                                      "more than 5000 blobs",
		property(`<Last-Modified>Tue, 31 Feb 2026 00:00:00 GMT</Last-Modified>`): "invalid Last-Modified",
		property(`<Content-Length>9999999999999999999</Content-Length>`):         "invalid Content-Length",
		head + strings.Repeat("<a>", 100):                                        "in each other",
		head + `<Blob><Name>` + strings.Repeat("a", maxToken+1):                  "a token has more than",
		`<EnumerationResults><Blobs></Blobs></EnumerationResults x="">`:          "unexpected </",
	} {
		if _, _, err := decoded(strings.NewReader(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.150s: %v; want %s", doc, err, want)
		}
	}
	broken := errors.New("connection reset")
	r := io.MultiReader(bytes.NewReader(whole[:1000]), iotest.ErrReader(broken))
	if _, _, err := decoded(r); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// What encoding/xml reads as a listing, Decode reads the same or rejects for a reason of its own.
func FuzzDecode(f *testing.F) {
	f.Add(page(2))
	f.Add(
		[]byte(
			head + `<Blob><Name Encoded="true">a%41</Name><Snapshot/><Properties><Etag>"1"</Etag></Properties></Blob>` +
				`</Blobs>` + tail,
		),
	)
	f.Add([]byte(head + "<Blob><Name>a<![CDATA[<b>]]>&#x41;\r\n<!-- c --></Name></Blob></Blobs><NextMarker/>" + tail))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var got []inventory.Blob
		var marker string
		var err error
		ceiling.Hold(t, 16<<20+64*uint64(len(doc)), func() { got, marker, err = decoded(bytes.NewReader(doc)) })
		want, wantMarker, oerr := oracle(doc)
		if oerr != nil {
			return // stricter: it checks what is skipped, too
		}
		if err != nil {
			for _, own := range []string{"not a listing", "declaration", "without a name", "unexpected <",
				"invalid Content-Length", "invalid Last-Modified", "in each other", "not UTF-8", "invalid attribute"} {
				if strings.Contains(err.Error(), own) {
					return
				}
			}
			t.Fatalf("%v, but it is a listing of %d blobs", err, len(want))
		}
		if marker != wantMarker || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %q\nwant %+v, %q", got, marker, want, wantMarker)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	doc := page(5000)
	for name, decode := range map[string]func() (int, error){
		"own": func() (int, error) {
			blobs, _, err := decoded(bytes.NewReader(doc))
			return len(blobs), err
		},
		"oracle": func() (int, error) {
			blobs, _, err := oracle(doc)
			return len(blobs), err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if n, err := decode(); err != nil || n != 5000 {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(b.N)*5000/b.Elapsed().Seconds(), "blobs/s")
		})
	}
}
