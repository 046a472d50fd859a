package compose

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"blobfeed/integration/stack"
)

// scripts are what the broker's image has in /opt/kafka/bin, by the classes that they start.
var scripts = map[string]string{
	"kafka-console-consumer.sh":    "org.apache.kafka.tools.consumer.ConsoleConsumer",
	"kafka-broker-api-versions.sh": "org.apache.kafka.tools.BrokerApiVersionsCommand",
}

var java = []string{"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=WARN", "-cp"}

// images finds what the images hold in the cache of package stack.
type images struct {
	cache string
	tools string // the jar of Kafka's command line tools
}

// findImages checks that the file names the versions that package stack has.
func findImages(ctx context.Context, f *File) (i images, err error) {
	if i.cache, err = stack.CacheDir(); err != nil {
		return i, err
	}
	for name, s := range f.Services {
		tagged, _, _ := strings.Cut(s.Image, "@")
		repository, version, _ := strings.Cut(tagged, ":")
		var want string
		switch repository {
		case "apache/kafka":
			want = filepath.Join(i.cache, "kafka/libs/kafka-server-"+version+".jar")
			if i.tools, err = tools(ctx, version, i.cache); err != nil {
				return i, err
			}
		case "apicurio/apicurio-registry":
			want = filepath.Join(i.cache, "registry/apicurio-registry-app-"+version+"-runner.jar")
		case "mcr.microsoft.com/azure-storage/azurite":
			text, err := os.ReadFile(filepath.Join(i.cache, "azurite/node_modules/azurite/package.json"))
			if err != nil || !strings.Contains(string(text), `"version": "`+version+`"`) {
				return i, fmt.Errorf("starting %s: package stack has another Azurite than %s: %w", name, version, err)
			}
			continue
		case "":
			continue // built here
		}
		if found, err := filepath.Glob(want); err != nil || len(found) != 1 {
			return i, fmt.Errorf("starting %s: package stack has no %s, only another version or none", name, s.Image)
		}
	}
	return i, nil
}

// tools fetches the jar of the command line tools, which brokers do not need.
func tools(ctx context.Context, version, cache string) (string, error) {
	jar := filepath.Join(cache, "kafka-tools-"+version+".jar")
	if found, err := filepath.Glob(jar); err == nil && len(found) == 1 {
		return jar, nil
	}
	fetch := exec.CommandContext(ctx, "mvn", "-q", "-B", "-Dstyle.color=never",
		"org.apache.maven.plugins:maven-dependency-plugin:2.10:get", "-Dtransitive=false",
		"-Dartifact=org.apache.kafka:kafka-tools:"+version, "-Ddest="+jar)
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetching Kafka's tools: %w\n%s", err, out)
	}
	return jar, nil
}

// command returns what stands for a command of an image.
func (i images) command(argv []string) []string {
	switch {
	case len(argv) == 0:
		return nil
	case strings.HasPrefix(argv[0], "/opt/kafka/bin/"):
		class := scripts[filepath.Base(argv[0])]
		classpath := filepath.Join(i.cache, "kafka/libs/*") + ":" + i.tools
		return append(append(java[:len(java):len(java)], classpath, class), argv[1:]...)
	case argv[0] == "azurite-blob":
		return append([]string{"node", filepath.Join(i.cache, "azurite/node_modules/azurite/dist/src/blob/main.js")},
			argv[1:]...)
	}
	return argv
}

// entrypoint returns the command of an image that is started without one.
func (i images) entrypoint(ctx context.Context, s Service, dir string, env []string) ([]string, error) {
	switch repository, _, _ := strings.Cut(s.Image, ":"); repository {
	case "apicurio/apicurio-registry":
		jars, err := filepath.Glob(filepath.Join(i.cache, "registry/*-runner.jar"))
		if err != nil || len(jars) != 1 {
			return nil, fmt.Errorf("finding the registry: %d jars, %w", len(jars), err)
		}
		return []string{"java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", jars[0]}, nil
	case "apache/kafka":
		return i.broker(ctx, dir, env)
	}
	return nil, fmt.Errorf("starting the image %s: add its command to this package", s.Image)
}

// broker does as the image's entrypoint: Kafka's own wrapper makes the settings from the environment, and formats the
// disk.
func (i images) broker(ctx context.Context, dir string, env []string) ([]string, error) {
	for _, name := range []string{"default", "mounted", "final"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, fmt.Errorf("writing the broker's settings: %w", err)
		}
	}
	for _, file := range []string{"server.properties", "log4j2.yaml", "tools-log4j2.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, "default", file), nil, 0o644); err != nil {
			return nil, fmt.Errorf("writing the broker's settings: %w", err)
		}
	}
	broker := append(java[:len(java):len(java)], filepath.Join(i.cache, "kafka/libs/*"))
	argv := append(broker[:len(broker):len(broker)], "kafka.docker.KafkaDockerWrapper", "setup",
		"--default-configs-dir", filepath.Join(dir, "default"), "--mounted-configs-dir", filepath.Join(dir, "mounted"),
		"--final-configs-dir", filepath.Join(dir, "final"))
	setup := exec.CommandContext(ctx, argv[0], argv[1:]...)
	setup.Env = append(env, "PATH="+os.Getenv("PATH"), "CLUSTER_ID=5L6g3nShT-eMCtK--X86sw") // the image's
	if out, err := setup.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("making the broker's settings: %w\n%s", err, out)
	}
	return append(broker, "kafka.Kafka", filepath.Join(dir, "final/server.properties")), nil
}
