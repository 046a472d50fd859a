package deploy

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// directives returns the lines of a unit or an environment file that are in force.
func directives(t *testing.T, name string) (all []string) {
	t.Helper()
	for line := range strings.Lines(read(t, name)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// The unit starts without a file of a secret: systemd fails a unit whose credential is missing. The drop-in adds one.
func TestUnitNeedsNoCredential(t *testing.T) {
	for _, line := range directives(t, "systemd/blobfeed-bridge.service") {
		if strings.Contains(line, "Credential=") || strings.Contains(line, "%d/") {
			t.Errorf("the unit has %s", line)
		}
	}
	dropIn := directives(t, "systemd/kafka-password.conf")
	if !slices.Contains(dropIn, "LoadCredential=kafka-password:/etc/blobfeed/kafka-password") ||
		!slices.Contains(dropIn, "Environment=BRIDGE_KAFKA_SASL_PASSWORD_FILE=%d/kafka-password") {
		t.Errorf("the drop-in has %q", dropIn)
	}
}

// systemd restarts what crashed, which Go ends with 2, but not what has invalid settings.
func TestServiceRestartsWhatCrashed(t *testing.T) {
	cmd := exec.Command(program, "run")
	cmd.Env = []string{}
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) {
		t.Fatalf("without settings: %v", err)
	}
	never := fmt.Sprintf("RestartPreventExitStatus=%d", exit.ExitCode())
	unit := directives(t, "systemd/blobfeed-bridge.service")
	if exit.ExitCode() == 2 || !slices.Contains(unit, never) || !slices.Contains(unit, "Restart=on-failure") {
		t.Errorf("invalid settings end with %d, and the unit has %q", exit.ExitCode(), unit)
	}
}

// The settings that come with the unit are complete and valid: only their values are examples.
func TestUnitSettingsAreValid(t *testing.T) {
	cmd := exec.Command(program, "config")
	cmd.Env = directives(t, "systemd/bridge.env")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "managed_identity") {
		t.Errorf("%v: %s", err, out)
	}
}

// What systemd finds open of what a unit can close: 0 is all closed, 10 nothing.
func TestUnitExposure(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	out, err := exec.Command(analyze, "security", "--offline=true", "--threshold=12",
		"systemd/blobfeed-bridge.service").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Overall exposure level") {
		t.Errorf("the exposure is above 1.2: %v\n%s", err, out)
	}
}
