package ops

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"net/http"
)

//go:embed page.html page.css page.js charts.js
var parts embed.FS

// page is one document, so that it needs nothing but itself.
var page = assemble("page.html", map[string][]string{
	"style": {"page.css"}, "script": {"page.js", "charts.js"},
})

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

// policy lets the browser run only what is in the page, connect only to the instance, and show the page in no frame.
var policy = fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; connect-src 'self'; img-src data:; "+
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", hashOf("style"), hashOf("script"))

// hashOf returns the source expression of the page's only element of that name.
func hashOf(element string) string {
	_, rest, _ := bytes.Cut(page, []byte("<"+element+">"))
	content, _, _ := bytes.Cut(rest, []byte("</"+element+">"))
	sum := sha256.Sum256(content)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func servePage(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	write(w, http.StatusOK, "text/html; charset=utf-8", page)
}
