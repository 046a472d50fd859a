package main

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"blobfeed/internal/config"
	"blobfeed/internal/setup"
)

// allAtOnce is how many bridges --all asks about at a time.
const allAtOnce = 8

// allBridges returns the bridges of the settings file by name, for --all; of one whose settings are invalid, the name
// and what all have in common: it may run with its former ones. It is an error if that is invalid.
func allBridges(env config.Env) (f *config.Fleet, bridges []*config.Config, err error) {
	f, err = setup.RequireFleet(env)
	if err == nil && len(f.Bridges) == 0 && (len(f.Rejected) == 0 || len(f.Common.KafkaBrokers) == 0) {
		err = f.Err()
	}
	if err != nil {
		return nil, nil, invalidSettings(err)
	}
	bridges = slices.Clone(f.Bridges)
	for name := range f.Rejected {
		c := *f.Common
		c.Name = name
		bridges = append(bridges, &c)
	}
	slices.SortFunc(bridges, func(a, b *config.Config) int { return strings.Compare(a.Name, b.Name) })
	return f, bridges, nil
}

// forAll calls ask for each bridge, several at a time, and then show for each, in order.
func forAll[T any](
	bridges []*config.Config, ask func(*config.Config) T, show func(*config.Config, T) error,
) error {
	answers := make([]T, len(bridges))
	var asking errgroup.Group
	asking.SetLimit(allAtOnce)
	for i, c := range bridges {
		asking.Go(func() error {
			answers[i] = ask(c)
			return nil
		})
	}
	if err := asking.Wait(); err != nil {
		return err
	}
	for i, c := range bridges {
		if err := show(c, answers[i]); err != nil {
			return err
		}
	}
	return nil
}

// failedOf returns an error if some bridges have failed.
func failedOf(failed, all int, what string) error {
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d bridges %s", failed, all, what)
}
