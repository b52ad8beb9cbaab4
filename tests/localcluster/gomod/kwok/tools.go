//go:build tools

// Package tools keeps the commands that the local cluster builds in go.mod.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
