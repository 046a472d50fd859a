package stack

import (
	"context"
	"fmt"
	"path/filepath"
)

// startRegistry starts Apicurio Registry with its storage in memory.
func (s *Stack) startRegistry(ctx context.Context) error {
	free, err := freePorts(2)
	if err != nil {
		return err
	}
	jars, err := filepath.Glob(filepath.Join(s.cache, "registry", "*-runner.jar"))
	if err != nil || len(jars) == 0 { // versions from 3.1 on are packed otherwise
		jars = []string{filepath.Join(s.cache, "registry", "quarkus-run.jar")}
	}
	flags, archive := s.classArchive("registry", true)
	args := append([]string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, flags...)
	p, err := s.spawn("registry", archive, "java", append(args,
		"-Dquarkus.http.host="+host, fmt.Sprintf("-Dquarkus.http.port=%d", free[0]),
		"-Dquarkus.management.host="+host, fmt.Sprintf("-Dquarkus.management.port=%d", free[1]), "-jar", jars[0])...)
	if err != nil {
		return err
	}
	s.SchemaRegistryURL = fmt.Sprintf("http://%s/apis/ccompat/v7", address(free[0]))
	return p.await(ctx, func(ctx context.Context) error { return answers(ctx, s.SchemaRegistryURL+"/subjects", 200) })
}
