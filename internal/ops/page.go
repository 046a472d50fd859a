package ops

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"net/http"
)

//go:embed page.html page.css page.js charts.js ribbon.js common.js fleet.html fleet.css fleet.js
var parts embed.FS

// Pages are one document each, so that they need nothing but themselves.
var (
	page = assemble("page.html", map[string][]string{
		"style": {"page.css"}, "script": {"common.js", "page.js", "charts.js", "ribbon.js"},
	})
	fleetPage = assemble("fleet.html", map[string][]string{
		"style": {"page.css", "fleet.css"}, "script": {"common.js", "fleet.js"},
	})
)

// assemble returns a file with other files as the content of its empty elements.
func assemble(name string, of map[string][]string) []byte {
	read := func(name string) []byte {
		b, err := parts.ReadFile(name)
		if err != nil {
			panic(err) // it is embedded
		}
		return b
	}
	doc := read(name)
	for element, files := range of {
		content := []byte("<" + element + ">")
		for _, file := range files {
			content = append(content, read(file)...)
		}
		end := "</" + element + ">"
		doc = bytes.Replace(doc, []byte("<"+element+">"+end), append(content, end...), 1)
	}
	return doc
}

// policy lets the browser run only what is in a page, connect only to the instance, and show the page in no frame.
func policy(page []byte) string {
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; connect-src 'self'; img-src data:; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", hashOf(page, "style"), hashOf(page, "script"))
}

// hashOf returns the source expression of a page's only element of that name.
func hashOf(page []byte, element string) string {
	_, rest, _ := bytes.Cut(page, []byte("<"+element+">"))
	content, _, _ := bytes.Cut(rest, []byte("</"+element+">"))
	sum := sha256.Sum256(content)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// servePage returns the handler of a page.
func servePage(page []byte) http.HandlerFunc {
	policy := policy(page)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		write(w, http.StatusOK, "text/html; charset=utf-8", page)
	}
}
