package tracing

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

const (
	sdkDisabled = "OTEL_SDK_DISABLED"
	exporters   = "OTEL_TRACES_EXPORTER"
	protocol    = "OTEL_EXPORTER_OTLP_PROTOCOL"
	endpoint    = "OTEL_EXPORTER_OTLP_ENDPOINT"

	// These are for traces alone, and come first.
	tracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

// collector returns where the environment wants traces to be sent, "" if nowhere. An error names what it asks
// for that there is not: the SDK would say so in the log at most, and send nothing, or elsewhere.
func collector() (host string, err error) {
	exporter, to := os.Getenv(exporters), cmp.Or(os.Getenv(tracesEndpoint), os.Getenv(endpoint))
	if strings.EqualFold(os.Getenv(sdkDisabled), "true") || exporter == "none" || exporter == "" && to == "" {
		return "", nil
	}
	host = "localhost:4318"
	var problems []error
	if exporter != "" && exporter != "otlp" {
		problems = append(problems, fmt.Errorf("%s: there is no %q; otlp and none are possible", exporters, exporter))
	}
	for _, name := range []string{tracesProtocol, protocol} {
		if p := os.Getenv(name); p != "" {
			if p != "http/protobuf" {
				problems = append(problems, fmt.Errorf("%s: there is no %q; "+
					"only http/protobuf is possible, which collectors take at port 4318", name, p))
			}
			break // the first one holds
		}
	}
	for _, name := range []string{endpoint, tracesEndpoint} {
		if v := os.Getenv(name); v != "" {
			u, err := url.Parse(v)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				// The value may be secret.
				problems = append(problems, fmt.Errorf("%s: want a URL such as http://localhost:4318", name))
				continue
			}
			host = u.Host
		}
	}
	return host, errors.Join(problems...)
}
