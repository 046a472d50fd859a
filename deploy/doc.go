// Package deploy holds only tests. They check what the program is shipped with, and need no Docker.
//
//	helm/        the chart              kubernetes/  the same objects without Helm
//	systemd/     a unit                 ../Dockerfile, and the rules for it, at the top
//	prometheus/  alerts                 grafana/     a dashboard
//	notices/     the licences of what a program contains, which make docs writes
//
// The Kubernetes objects are checked by tools/chart, with Helm's engine.
package deploy
