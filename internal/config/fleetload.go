package config

import (
	"cmp"
	"fmt"
	"os"
	"slices"
)

// LoadFleet reads the settings of all bridges of the settings file, or returns nil if the file has none, or if
// BRIDGE_NAME chooses one of them. Examine returns more problems of a bridge. An error concerns the whole file.
func LoadFleet(examine func(*Config) []error) (*Fleet, error) {
	d, err := readDocument()
	if d.lacksFleet() != nil {
		return nil, nil // Load reports an error
	}
	if err != nil {
		return nil, err
	}
	return d.loadFleet(examine)
}

// RequireFleet is LoadFleet where only the bridges of a settings file will do: it returns an error instead of nil.
func RequireFleet(examine func(*Config) []error) (*Fleet, error) {
	d, err := readDocument()
	if err == nil { // of a file that cannot be read, it is unknown whether it has bridges
		err = d.lacksFleet()
	}
	if err != nil {
		return nil, err
	}
	return d.loadFleet(examine)
}

// lacksFleet returns why there are no settings of many bridges.
func (d *document) lacksFleet() error {
	switch {
	case d.path == "":
		return fmt.Errorf("no settings file is named: name one that has %s with --config, or %s", fleetKey,
			variable(file))
	case !d.fleet:
		return fmt.Errorf("%s has no bridges: list them under %s", d.path, fleetKey)
	case os.Getenv(variable("NAME")) != "":
		return fmt.Errorf("%s chooses one bridge of %s: unset it", variable("NAME"), d.path)
	}
	return nil
}

func (d *document) loadFleet(examine func(*Config) []error) (*Fleet, error) {
	f := &Fleet{Path: d.path, Rejected: map[string][]error{}}
	common, p := d.load(nil, false, true)
	if f.Common = common; len(d.bridge) == 0 {
		return f, p.joined()
	}
	for i := range d.bridge {
		m := &d.bridge[i]
		c, p := d.load(m, true, true)
		if p.all = append(p.all, examine(c)...); len(p.all) > 0 {
			f.Rejected[m.name] = p.all
			continue
		}
		f.Bridges = append(f.Bridges, c)
	}
	slices.SortFunc(f.Bridges, func(a, b *Config) int { return cmp.Compare(a.Name, b.Name) })
	f.rejectSharedTopics()
	return f, nil
}
