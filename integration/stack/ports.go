package stack

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports are taken from below the range that the kernel gives to outgoing connections and to listeners on port 0 (32768
// and up on Linux), so nothing else gets a broker's port while the broker is down.
const firstPort, lastPort = 20000, 32000

var ports struct {
	sync.Mutex
	given map[int]bool // by this process
}

// freePorts returns n ports nobody listens on.
func freePorts(n int) ([]int, error) {
	ports.Lock()
	defer ports.Unlock()
	if ports.given == nil {
		ports.given = map[int]bool{}
	}
	var free []int
	for try := 0; len(free) < n; try++ {
		if try == 1000 {
			return nil, fmt.Errorf("finding %d free ports from %d to %d: all that were tried are taken", n, firstPort,
				lastPort)
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		if ports.given[port] {
			continue
		}
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		_ = l.Close()
		ports.given[port] = true
		free = append(free, port)
	}
	return free, nil
}

// FreeAddress returns an address of this machine that nobody listens at.
func FreeAddress() (string, error) {
	free, err := freePorts(1)
	if err != nil {
		return "", err
	}
	return address(free[0]), nil
}

func address(port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }
