package stack

import (
	"fmt"
	"os/exec"
)

// installHints say what to do about a tool that is missing.
var installHints = map[string]string{
	"java": "install Java 17 or newer (Debian: apt-get install openjdk-17-jre-headless)",
	"mvn": "install Maven 3.8 or newer (Debian: apt-get install maven); " +
		"it's needed once, to fetch Kafka and the registry",
	"node": "install Node.js 20 or newer (Debian: apt-get install nodejs)",
	"npm":  "install npm (Debian: apt-get install npm); it's needed once, to fetch Azurite",
}

// requireTool fails if a tool is not installed.
func requireTool(tool string) error {
	if _, err := exec.LookPath(tool); err != nil {
		return fmt.Errorf("looking for %s: it is not installed: %s, or name what runs already in %s, %s and %s: %w",
			tool, installHints[tool], envKafka, envRegistry, envAzure, err)
	}
	return nil
}
