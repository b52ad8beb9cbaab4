//go:build tools

// Package tools keeps the commands that the local cluster builds in go.mod.
package tools

import _ "helm.sh/helm/v4/cmd/helm"
