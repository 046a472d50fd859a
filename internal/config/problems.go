package config

import (
	"errors"
	"fmt"
	"slices"
)

// problems are what is wrong with the settings, all of it, each by the name of its setting.
type problems struct {
	config *Config
	all    []error
}

func (p *problems) add(name, format string, args ...any) {
	p.all = append(p.all, p.config.Problem(name, format, args...))
}

// Problem returns an error about the setting of that name, with the place in the settings file if it stands there.
func (c *Config) Problem(name, format string, args ...any) error {
	label := variable(name)
	if place := c.places[name]; place != "" {
		label += " (" + place + ")"
	}
	return fmt.Errorf(label+": "+format, args...)
}

// invalid adds a value that a setting does not take.
func (p *problems) invalid(name, value, want string) {
	s, _ := find(table, name)
	p.add(name, "%s", s.invalid(value, want))
}

func (p *problems) joined() error { return errors.Join(p.all...) }

// required adds the settings that are empty: pairs of name and value. Because says what needs them.
func (p *problems) required(because string, pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] == "" {
			p.add(pair[0], "required for %s", because)
		}
	}
}

// idle adds the settings that are not empty, but have no effect without another one.
func (p *problems) idle(without string, pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			p.add(pair[0], "has no effect without %s", without)
		}
	}
}
