package compose

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// network connects services, each of which has a namespace, and this machine.
type network struct {
	device    string
	addresses map[string]string // by service
}

// connect makes the network of services.
func connect(ctx context.Context, f *File) (_ *network, err error) {
	// Of this process: two runs do not meet.
	n := &network{device: fmt.Sprintf("bf%d", os.Getpid()), addresses: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	subnet := fmt.Sprintf("10.213.%d.", os.Getpid()%250)
	for _, args := range []string{
		"link add " + n.device + " type bridge",
		"addr add " + subnet + "1/24 dev " + n.device,
		"link set " + n.device + " up",
	} {
		if err := ip(ctx, args); err != nil {
			return nil, err
		}
	}
	hosts := "127.0.0.1 localhost\n"
	services := slices.Sorted(maps.Keys(f.Services))
	for i, service := range services {
		address := fmt.Sprintf("%s%d", subnet, i+2)
		n.addresses[service] = address
		hosts += address + " " + service + "\n"
		space, end := n.space(service), fmt.Sprintf("%s-%d", n.device, i)
		for _, args := range []string{
			"netns add " + space,
			"link add " + end + " type veth peer name eth0 netns " + space,
			"link set " + end + " master " + n.device + " up",
			"-n " + space + " addr add " + address + "/24 dev eth0",
			"-n " + space + " link set eth0 up",
			"-n " + space + " link set lo up",
		} {
			if err := ip(ctx, args); err != nil {
				return nil, err
			}
		}
	}
	for _, service := range services { // "ip netns exec" shows this file as /etc/hosts
		if err := os.MkdirAll(filepath.Dir(n.hosts(service)), 0o755); err != nil {
			return nil, fmt.Errorf("writing the names of services: %w", err)
		}
		if err := os.WriteFile(n.hosts(service), []byte(hosts), 0o644); err != nil {
			return nil, fmt.Errorf("writing the names of services: %w", err)
		}
	}
	return n, nil
}

func (n *network) space(service string) string { return n.device + "-" + service }

func (n *network) hosts(service string) string {
	return filepath.Join("/etc/netns", n.space(service), "hosts")
}

// within makes a command run in the network of a service.
func (n *network) within(service string, argv []string) []string {
	return slices.Concat([]string{"ip", "netns", "exec", n.space(service)}, argv)
}

// close removes the network. Its processes must have ended.
func (n *network) close() (err error) {
	for service := range n.addresses {
		err = errors.Join(err, ip(context.Background(), "netns del "+n.space(service)),
			os.RemoveAll(filepath.Dir(n.hosts(service))))
	}
	return errors.Join(err, ip(context.Background(), "link del "+n.device))
}

// dialer returns a function that connects to the ports that services publish on this machine.
func (n *network) dialer(f *File) func(context.Context, string, string) (net.Conn, error) {
	published := map[string]string{}
	for name, service := range f.Services {
		for _, port := range service.Ports {
			if parts := strings.Split(port, ":"); len(parts) == 3 {
				published[parts[1]] = net.JoinHostPort(n.addresses[name], parts[2])
			}
		}
	}
	return func(ctx context.Context, protocol, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if published[port] == "" || host != "localhost" && host != "127.0.0.1" {
			return nil, fmt.Errorf("connecting to %s: no service publishes this port", address)
		}
		return new(net.Dialer).DialContext(ctx, protocol, published[port])
	}
}

func ip(ctx context.Context, args string) error {
	if out, err := exec.CommandContext(ctx, "ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		return fmt.Errorf("running ip %s: %w: %s", args, err, out)
	}
	return nil
}
