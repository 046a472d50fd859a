package compose

import (
	"fmt"
	"maps"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is what a Compose file says, as far as processes can follow it.
type File struct {
	Services map[string]Service
}

// Service is one of the file.
type Service struct {
	Image, Build string
	Command      words
	Environment  map[string]string
	Ports        []string // 127.0.0.1:published:port
	Volumes      []string // name:path
	Healthcheck  struct{ Test []string }
	DependsOn    map[string]any `yaml:"depends_on"`
	Profiles     []string       // that start it; none: it starts always
}

// words are a command, of which Compose takes a text apart.
type words []string

// UnmarshalYAML takes a list or a text.
func (w *words) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*w = strings.Fields(node.Value)
		return nil
	}
	return node.Decode((*[]string)(w))
}

// Read reads a Compose file.
func Read(name string) (*File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the Compose file: %w", err)
	}
	// Compose replaces variables; the file has none, only escaped dollars.
	f := new(File)
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), "$$", "$")), f); err != nil {
		return nil, fmt.Errorf("reading the Compose file %s: %w", name, err)
	}
	maps.DeleteFunc(f.Services, func(_ string, s Service) bool { return len(s.Profiles) > 0 })
	return f, nil
}

// locate replaces the paths of volumes by folders below dir.
func (s Service) locate(text, dir string) string {
	for _, volume := range s.Volumes {
		name, path, _ := strings.Cut(volume, ":")
		if text == path {
			return dir + "/" + name
		}
	}
	return text
}
