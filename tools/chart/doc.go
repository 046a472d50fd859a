// Package chart checks what deploy/ holds for Kubernetes. Helm's own engine lints and renders the chart.
// Every object, also of the plain manifests, is read strictly into the type that Kubernetes has for it. The
// package is a module of its own, so that the bridge need not depend on Helm.
package chart
