// Package logging keeps the log quiet: what repeats is counted instead of written again.
package logging
