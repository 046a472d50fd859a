package stack

import (
	"reflect"
	"testing"
)

func TestFromEnvironment(t *testing.T) {
	all := Options{Brokers: 3, Registry: true, Azurite: true}
	for _, tc := range []struct {
		name    string
		env     map[string]string
		brokers []string
		missing Options
	}{
		{"nothing is named", nil, nil, all},
		{"all is named", map[string]string{envKafka: "a:1,b:2", envRegistry: "http://r", envAzure: "x=y"},
			[]string{"a:1", "b:2"}, Options{}},
		{"a part is named", map[string]string{envRegistry: "http://r"}, nil, Options{Brokers: 3, Azurite: true}},
		{"blanks and empty parts", map[string]string{envKafka: " a:1 ,, b:2,", envRegistry: " ", envAzure: ""},
			[]string{"a:1", "b:2"}, Options{Registry: true, Azurite: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			named, missing := fromEnvironment(func(name string) string { return tc.env[name] }, all)
			if !reflect.DeepEqual(named.KafkaBrokers, tc.brokers) {
				t.Errorf("brokers %q, want %q", named.KafkaBrokers, tc.brokers)
			}
			if !reflect.DeepEqual(missing, tc.missing) {
				t.Errorf("left to start %+v, want %+v", missing, tc.missing)
			}
		})
	}
}

// What is not wanted is not started, though nobody names it.
func TestFromEnvironmentKeepsOptions(t *testing.T) {
	if _, missing := fromEnvironment(func(string) string { return "" }, Options{Brokers: 1}); missing.Registry ||
		missing.Azurite {
		t.Errorf("left to start %+v, want Kafka only", missing)
	}
}

// With everything named nothing is started, resolved or needed; Env gives back what was named.
func TestGetFromEnvironment(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(envKafka, "k:1,k:2")
	t.Setenv(envRegistry, "http://r/apis")
	t.Setenv(envAzure, "AccountName=a;AccountKey=b==;")
	s, err := Get(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"KAFKA_BROKERS=k:1,k:2", "SCHEMA_REGISTRY_URL=http://r/apis",
		"AZURE_STORAGE_CONNECTION_STRING=AccountName=a;AccountKey=b==;"}
	if got := s.Env(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := s.KillBroker(0); err == nil {
		t.Error("killed a broker that the stack did not start")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
