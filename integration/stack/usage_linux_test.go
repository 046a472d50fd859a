package stack

import (
	"os"
	"testing"
)

func TestResidentOf(t *testing.T) {
	have, err := ResidentOf(os.Getpid())
	if err != nil || have < 1<<20 {
		t.Errorf("this process has %.0f bytes, %v", have, err)
	}
	if largest, err := LargestOf(os.Getpid()); err != nil || largest < have {
		t.Errorf("this process had %.0f bytes at most, %v, and has %.0f", largest, err, have)
	}
	if _, err := ResidentOf(1 << 30); err == nil {
		t.Error("a process that is not there has memory")
	}
}
