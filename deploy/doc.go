// Package deploy holds no code: only tests of what the program is shipped in. They need no Docker.
//
//	helm/        the chart              kubernetes/  the same without Helm
//	systemd/     a unit                 docker/      the image of releases; Dockerfile is at the top
//	notices/     licences of what programs hold
//
// The Kubernetes objects are checked by tools/chart, with Helm's engine.
package deploy
