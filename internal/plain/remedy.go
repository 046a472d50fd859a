package plain

import (
	"errors"
	"strings"
)

// Remedied is an error whose text ends with what to do about it. So the log, the status page and a verb's last line all
// say it, and a check can show it on a line of its own.
type Remedied interface {
	error
	Cause() string  // the text without the remedy
	Remedy() string // "" if there is none
}

// fixable is an error with what to do about it.
type fixable struct {
	err error
	do  string
}

var _ Remedied = (*fixable)(nil)

func (e *fixable) Error() string { return strings.TrimRight(e.err.Error(), ". ") + ": " + e.do }

// Cause implements Remedied.
func (e *fixable) Cause() string { return e.err.Error() }

// Remedy implements Remedied.
func (e *fixable) Remedy() string { return e.do }

func (e *fixable) Unwrap() error { return e.err }

// WithRemedy adds a remedy to err. Without one, or if err has one already, it returns err.
func WithRemedy(err error, do string) error {
	if err == nil || do == "" || errors.As(err, new(Remedied)) {
		return err
	}
	return &fixable{err, do}
}

// SplitRemedy returns the text of err without its remedy, and the remedy, "" if there is none.
func SplitRemedy(err error) (text, do string) {
	var e Remedied
	if !errors.As(err, &e) || e.Remedy() == "" {
		return err.Error(), ""
	}
	return strings.Replace(err.Error(), e.Error(), e.Cause(), 1), e.Remedy()
}
