// Package check holds what a check of the surroundings finds: a list of lines, each with what to do about it.
package check
