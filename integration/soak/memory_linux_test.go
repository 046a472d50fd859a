package soak

import (
	"os"
	"testing"
)

func TestResident(t *testing.T) {
	have, err := resident(os.Getpid())
	if err != nil || have < mib {
		t.Errorf("this process has %.0f bytes, %v", have, err)
	}
	if _, err := resident(1 << 30); err == nil {
		t.Error("a process that is not there has memory")
	}
}
