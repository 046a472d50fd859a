//go:build !race

package ceiling

const raced = false
