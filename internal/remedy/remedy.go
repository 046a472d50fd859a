// Package remedy adds to an error what to do about it, so that the log, the status page and a verb's last line all say
// it, and a check can show it on a line of its own.
package remedy

import (
	"errors"
	"strings"
)

// fixable is an error with what to do about it.
type fixable struct {
	err error
	do  string
}

func (e *fixable) Error() string { return strings.TrimRight(e.err.Error(), ". ") + ": " + e.do }

func (e *fixable) Unwrap() error { return e.err }

// With adds a remedy to err. Without one, or if err has one already, it returns err.
func With(err error, do string) error {
	if err == nil || do == "" || errors.As(err, new(*fixable)) {
		return err
	}
	return &fixable{err, do}
}

// Split returns the text of err without its remedy, and the remedy, "" if there is none.
func Split(err error) (text, do string) {
	var e *fixable
	if !errors.As(err, &e) {
		return err.Error(), ""
	}
	return strings.Replace(err.Error(), e.Error(), e.err.Error(), 1), e.do
}
