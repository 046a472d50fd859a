// Package fleet runs many bridges in one process, each failing alone.
//
// Each bridge has a goroutine that runs it. A bridge that ends with an error starts again after a pause, which doubles
// from a second to a minute; the others do not notice. A bridge that ends without an error has done its work, and stays
// ended. A panic in a goroutine of a bridge is an error of this bridge (internal/crash). Bridges can be added, replaced
// and removed while the others work.
package fleet
