package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// problems are what is wrong with the settings, each by the name of its own.
type problems []error

func (p *problems) add(name, format string, args ...any) {
	*p = append(*p, fmt.Errorf(Prefix+"_"+name+": "+format, args...))
}

func (p *problems) oneOf(name, have string, want ...string) {
	if !slices.Contains(want, have) {
		p.add(name, "want one of %s", strings.Join(want, ", "))
	}
}

func (p *problems) atLeast(name string, have, least time.Duration) {
	if have < least {
		p.add(name, "want at least %s", least)
	}
}

// required adds the settings that are empty: pairs of name and value. Because says what needs them.
func (p *problems) required(because string, pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] == "" {
			p.add(pair[0], "required for %s", because)
		}
	}
}

// idle adds the settings that are not empty, and have no effect without another: somebody believes they have.
func (p *problems) idle(without string, pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			p.add(pair[0], "has no effect without %s", without)
		}
	}
}
