package chaos

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Verify has the program's own verb compare topic and feed: another reader, other code. It returns what that wrote, and
// an error if the verb found something, or did not end in time.
func Verify(program, dir string, limit time.Duration, flags []string, settings ...string) (report []byte, err error) {
	log := filepath.Join(dir, "verify.log")
	i, err := Launch(program, log, append([]string{"verify"}, flags...), settings...)
	if err != nil {
		return nil, err
	}
	i.Name = "bridge verify"
	failed := i.Wait(limit)
	report, err = os.ReadFile(log)
	return report, errors.Join(failed, err)
}
