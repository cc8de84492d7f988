package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		status int
		stdout string
		stderr string
	}{
		{name: "help goes to stdout", args: []string{"help"}, stdout: "usage: replicated <command>"},
		{name: "so does -h", args: []string{"-h"}, stdout: "demo "},
		{name: "no command is an error", status: 2, stderr: "usage: replicated <command>"},
		{name: "an unknown command is named", args: []string{"dance"}, status: 2, stderr: `no command "dance"`},
		{name: "an unknown flag is named", args: []string{"demo", "-loud"}, status: 2, stderr: "-loud"},
		{name: "an unknown engine is named", args: []string{"demo", "-engine", "oracle"}, status: 2, stderr: `-engine "oracle"`},
		{name: "a stray argument is named", args: []string{"demo", "postgres"}, status: 2, stderr: `"postgres"`},
		{name: "an unknown dialect is named", args: []string{"route", "-dialect", "oracle"}, status: 2, stderr: `dialect "oracle"`},
		{name: "the flags of a command", args: []string{"demo", "-h"}, stdout: "-engine"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if status := run(tt.args, &stdout, &stderr); status != tt.status {
				t.Errorf("exit status %d, want %d", status, tt.status)
			}
			for _, out := range []struct {
				name, got, want string
			}{{"stdout", stdout.String(), tt.stdout}, {"stderr", stderr.String(), tt.stderr}} {
				if !strings.Contains(out.got, out.want) || out.want == "" && out.got != "" {
					t.Errorf("%s is %q, want %q in it", out.name, out.got, out.want)
				}
			}
		})
	}
}
