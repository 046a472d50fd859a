//go:build !linux

package main

import "syscall"

func commandAttr() *syscall.SysProcAttr { return nil }
