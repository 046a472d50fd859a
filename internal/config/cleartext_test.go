package config

import (
	"strings"
	"testing"
)

// What is sent unencrypted is reported; credentials for the registry go over http to this machine only.
func TestClearText(t *testing.T) {
	const sas, key = "SharedAccessSignature=sv=1&sig=x", "AccountKey=eA=="
	for name, c := range map[string]struct {
		env     map[string]string
		refused string // by the name of a setting
		dangers []string
	}{
		"all local": {map[string]string{"KAFKA_BROKERS": "localhost:9092,127.0.0.1:9093,[::1]:9094",
			"REGISTRY_URL": "http://localhost:8081"}, "", nil},
		"Kafka, another host": {map[string]string{"KAFKA_BROKERS": "localhost:9092,kafka:9092"}, "",
			[]string{"Kafka is reached unencrypted"}},
		"Kafka, TLS": {map[string]string{"KAFKA_BROKERS": "kafka:9092", "KAFKA_TLS_ENABLED": "true"}, "", nil},
		"PLAIN": {map[string]string{"KAFKA_BROKERS": "localhost:9092", "KAFKA_SASL_MECHANISM": "PLAIN",
			"KAFKA_SASL_USERNAME": "u", "KAFKA_SASL_PASSWORD": "p"},
			"", []string{"credentials for Kafka"}},
		"SCRAM": {map[string]string{"KAFKA_BROKERS": "localhost:9092", "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
			"KAFKA_SASL_USERNAME": "u", "KAFKA_SASL_PASSWORD": "p"},
			"", []string{"password can be guessed"}},
		"OAUTHBEARER": {map[string]string{"KAFKA_BROKERS": "localhost:9092", "KAFKA_SASL_MECHANISM": "OAUTHBEARER",
			"KAFKA_SASL_USERNAME": "c", "KAFKA_SASL_PASSWORD": "s",
			"KAFKA_SASL_TOKENS": "http://localhost:1/token"}, "", []string{"credentials for Kafka",
			"client secret"}},
		"SCRAM, TLS": {map[string]string{"KAFKA_BROKERS": "kafka:9092", "KAFKA_TLS_ENABLED": "true",
			"KAFKA_SASL_MECHANISM": "SCRAM-SHA-512", "KAFKA_SASL_USERNAME": "u",
			"KAFKA_SASL_PASSWORD": "p"}, "", nil},
		"registry, this machine": {map[string]string{"REGISTRY_URL": "http://127.0.0.1:8081", "REGISTRY_USERNAME": "u",
			"REGISTRY_PASSWORD": "hunter2"},
			"", []string{"schema registry"}},
		"registry, another host": {map[string]string{"REGISTRY_URL": "https://a:8081,http://registry:8081",
			"REGISTRY_USERNAME": "u", "REGISTRY_PASSWORD": "hunter2"},
			"REGISTRY_URL", nil},
		"registry, token": {map[string]string{"REGISTRY_URL": "http://registry:8081",
			"REGISTRY_PASSWORD": "hunter2"}, "REGISTRY_URL", nil},
		"registry, no credentials": {map[string]string{"REGISTRY_URL": "http://registry:8081"}, "", nil},
		"registry, https": {map[string]string{"REGISTRY_URL": "https://registry:8081",
			"REGISTRY_PASSWORD": "hunter2"}, "", nil},
		"SAS": {map[string]string{"SOURCE_URL": "http://127.0.0.1:10000/acct",
			"SOURCE_AUTH": "sas", "SOURCE_SAS": "sig=hunter2"}, "", []string{"shared access signature"}},
		"SAS, https": {map[string]string{"SOURCE_URL": "https://acct.blob.core.windows.net",
			"SOURCE_AUTH": "sas", "SOURCE_SAS": "sig=hunter2"}, "", nil},
		"SAS in a string": {map[string]string{"SOURCE_URL": "", "SOURCE_AUTH": "connection_string",
			"SOURCE_CONNECTION_STRING": "BlobEndpoint=http://127.0.0.1:1/a;" + sas},
			"", []string{"shared access signature"}},
		"key in a string": {map[string]string{"SOURCE_URL": "", "SOURCE_AUTH": "connection_string",
			"SOURCE_CONNECTION_STRING": "BlobEndpoint=http://127.0.0.1:1/a;" + key}, "", nil},
	} {
		env := map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "localhost:9092"}
		for name, value := range c.env {
			env["BRIDGE_"+name] = value
		}
		set(t, env)
		conf, err := Environ().Load(true)
		if (err != nil) != (c.refused != "") || err != nil && (!strings.Contains(err.Error(), "BRIDGE_"+c.refused+
			": ") || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		dangers := conf.Insecure()
		if len(dangers) != len(c.dangers) {
			t.Errorf("%s: %q", name, dangers)
			continue
		}
		for i, part := range c.dangers {
			if !strings.Contains(dangers[i].Error(), part) {
				t.Errorf("%s: %q", name, dangers[i])
			}
		}
	}
}
