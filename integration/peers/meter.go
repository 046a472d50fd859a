package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// meterVerb makes this program run another and write its usage to file 3. A process inherits the peak memory of the one
// that forks it, so a small process has to: the one that wrote the feed and counts events is large.
const meterVerb = "meter"

// usage is what a program took, from its start to its end.
type usage struct {
	Seconds, CPUSeconds float64
	PeakBytes           int64
}

func meter(command []string) int {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	began := time.Now()
	err := cmd.Run()
	u := usage{Seconds: time.Since(began).Seconds()}
	if cmd.ProcessState != nil {
		if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			u.PeakBytes = int64(r.Maxrss)
			if runtime.GOOS != "darwin" {
				u.PeakBytes *= 1024
			}
		}
		u.CPUSeconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	if err = errors.Join(err, json.NewEncoder(os.NewFile(3, "usage")).Encode(u)); err != nil {
		fmt.Fprintln(os.Stderr, "peers: running", command[0]+":", err)
		return 1
	}
	return 0
}
