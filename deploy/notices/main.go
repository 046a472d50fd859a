// Command notices writes the licences of everything that a released program holds, which most of them require to be
// shipped with it: go run ./deploy/notices > THIRD_PARTY_NOTICES.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	w := bufio.NewWriter(os.Stdout)
	err := write(w)
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

const header = `Third-party notices

The programs of this project hold code of the modules below, under the licences that follow their names.
Made by "make docs".
`

// write prints each licence once, under all that it is the licence of.
func write(w io.Writer) error {
	found, err := notices()
	if err != nil {
		return err
	}
	fmt.Fprint(w, header)
	var order []string
	of := map[string][]string{}
	for _, n := range found {
		if of[n.text] == nil {
			order = append(order, n.text)
		}
		of[n.text] = append(of[n.text], n.name)
	}
	for _, text := range order {
		names := strings.Join(of[text], "\n")
		fmt.Fprintf(w, "\n%s\n%s\n%s\n\n%s\n", strings.Repeat("=", 100), names, strings.Repeat("-", 100), text)
	}
	return nil
}
