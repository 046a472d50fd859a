package main

import (
	"fmt"

	"golang.org/x/sync/errgroup"

	"blobfeed/internal/config"
	"blobfeed/internal/setup"
)

// allAtOnce is how many bridges --all asks about at a time.
const allAtOnce = 8

// allBridges returns the settings of the bridges of the file, for --all.
func allBridges(env config.Env) ([]*config.Config, error) {
	f, err := setup.RequireFleet(env)
	if err == nil {
		err = f.Err()
	}
	if err != nil {
		return nil, invalidSettings(err)
	}
	return f.Bridges, nil
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
