//go:build tools

// Package tools keeps the commands that the local cluster builds in go.mod.
package tools

import _ "go.etcd.io/etcd/server/v3"
