// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// common are flags that several commands have.
type common struct {
	Debug bool `env:"DEBUG" help:"Log more." short:"d"`
}

// serve has a flag of each type, and each tag.
type serve struct {
	common

	Address  string        `default:"${address}" env:"ADDRESS" help:"Address to serve on."`
	APIRate  float64       `default:"20" env:"API_RATE" group:"API" help:"Requests per second."`
	APIBurst int           `default:"60" group:"API" help:"Requests at once."`
	Poll     time.Duration `default:"1m" env:"POLL" help:"Time between polls."`
	Hosts    []string      `default:"a.example,b.example" env:"HOSTS" help:"Hosts." placeholder:"HOST"`
	Name     string        `env:"NAME" help:"Name." required:""`
	Mode     string        `default:"Fast" enum:"Fast,Safe" help:"Mode."`
	Probe    bool          `default:"true" env:"PROBE" help:"Probe." negatable:""`
	Config   string        `env:"CONFIG" help:"File." xor:"source"`
	Folder   string        `env:"FOLDER" help:"Folder." name:"from-files" type:"existingdir" xor:"source"`
}

func (*serve) Run() error { return nil }

func (s *serve) Validate() error {
	if s.APIBurst == 0 {
		return errors.New("--api-burst must not be 0")
	}
	return nil
}

// stop is another command.
type stop struct {
	Wait time.Duration `help:"Time to wait."`
}

func (*stop) Run() error { return nil }

func newProgram() Program {
	return Program{
		Name: "program", Description: "Serves.\n\nIt has two commands.", Version: "v1.2.3", Vars: map[string]string{"address": ":8080"},
		Commands: []Command{{Name: "serve", Help: "Serve until stopped.", Flags: &serve{}}, {Name: "stop", Help: "Stop.", Flags: &stop{}}},
	}
}

// defaults returns the flags that a command line without any but --name leads to, after changes.
func defaults(changes func(s *serve)) *serve {
	s := &serve{Address: ":8080", APIRate: 20, APIBurst: 60, Poll: time.Minute, Hosts: []string{"a.example", "b.example"}, Name: "n", Mode: "Fast", Probe: true}
	changes(s)
	return s
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	if err := os.Mkdir(filepath.Join(dir, "routes"), 0o700); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		want   Runner
		err    string
	}{
		"Defaults": {
			reason: "A flag that is not given has its default, and lists are separated by commas.",
			args:   []string{"--name=n"},
			want:   defaults(func(*serve) {}),
		},
		"Given": {
			reason: "Each type can be given, and values of lists replace the default.",
			args:   []string{"-d", "--name", "n", "--address=:1", "--api-rate=1.5", "--api-burst=2", "--poll=3s", "--hosts=x,y", "--hosts=z", "--mode=Safe", "--probe=false", "--from-files=" + dir},
			want: defaults(func(s *serve) {
				s.Debug, s.Address, s.APIRate, s.APIBurst, s.Poll, s.Hosts, s.Mode, s.Probe, s.Folder = true, ":1", 1.5, 2, 3*time.Second, []string{"x", "y", "z"}, "Safe", false, dir
			}),
		},
		"Environment": {
			reason: "A variable replaces the default, also with an empty text.",
			env:    map[string]string{"NAME": "n", "DEBUG": "true", "API_RATE": "2", "POLL": "5s", "HOSTS": "x,y", "PROBE": "false", "ADDRESS": ""},
			want: defaults(func(s *serve) {
				s.Debug, s.Address, s.APIRate, s.Poll, s.Hosts, s.Probe = true, "", 2, 5*time.Second, []string{"x", "y"}, false
			}),
		},
		"Lists": {
			reason: "A list has no empty values, which would stand for everything, and spaces do not count.",
			args:   []string{"--name=n", "--hosts=a, b,\nc,"},
			want:   defaults(func(s *serve) { s.Hosts = []string{"a", "b", "c"} }),
		},
		"Empty": {reason: "A list can be empty.", args: []string{"--name=n", "--hosts="}, want: defaults(func(s *serve) { s.Hosts = nil })},
		"Words": {
			reason: "Booleans can be words, in any case.",
			args:   []string{"--name=n", "--debug=Yes", "--no-probe=no"},
			want:   defaults(func(s *serve) { s.Debug = true }),
		},
		"Home": {
			reason: "A directory can be that of the user, which a shell does not replace.",
			args:   []string{"--name=n", "--from-files=~/routes"},
			want:   defaults(func(s *serve) { s.Folder = filepath.Join(dir, "routes") }),
		},
		"Both": {
			reason: "A flag wins over its variable.",
			args:   []string{"--name=n", "--poll=2s", "--hosts=z", "--probe"},
			env:    map[string]string{"NAME": "other", "POLL": "5s", "HOSTS": "x,y", "PROBE": "false"},
			want:   defaults(func(s *serve) { s.Poll, s.Hosts = 2*time.Second, []string{"z"} }),
		},
		"Negated": {
			reason: "A negated flag wins over its variable.",
			args:   []string{"--name=n", "--no-probe"},
			env:    map[string]string{"PROBE": "true"},
			want:   defaults(func(s *serve) { s.Probe = false }),
		},
		"Exclusive": {
			reason: "The command line has one flag of a set.",
			args:   []string{"--name=n", "--config=f", "--from-files=" + dir},
			err:    "--config and --from-files exclude each other",
		},
		"ExclusiveEnvironment": {
			reason: "A variable that is there for other programs excludes no flag.",
			args:   []string{"--name=n", "--from-files=" + dir},
			env:    map[string]string{"CONFIG": "f"},
			want:   defaults(func(s *serve) { s.Folder = dir }),
		},
		"ExclusiveVariables": {
			reason: "Two variables of a set exclude each other.",
			env:    map[string]string{"NAME": "n", "CONFIG": "f", "FOLDER": dir},
			err:    "--config and --from-files exclude each other",
		},
		"ExclusiveEmpty": {
			reason: "An empty variable excludes nothing.",
			env:    map[string]string{"NAME": "n", "CONFIG": "", "FOLDER": dir},
			want:   defaults(func(s *serve) { s.Folder = dir }),
		},
		"Named":           {reason: "The first command can be named.", args: []string{"serve", "--name=n"}, want: defaults(func(*serve) {})},
		"Other":           {reason: "Each command has other flags.", args: []string{"stop", "--wait=1s"}, want: &stop{Wait: time.Second}},
		"Missing":         {reason: "A required flag must be given.", err: "--name is required"},
		"Enum":            {reason: "Only the values of an enumeration are permitted.", args: []string{"--name=n", "--mode=Slow"}, err: `--mode must be one of Fast, Safe, and is "Slow"`},
		"NoFolder":        {reason: "A folder must exist.", args: []string{"--name=n", "--from-files=" + dir + "/none"}, err: "is not a directory"},
		"Invalid":         {reason: "Flags are validated.", args: []string{"--name=n", "--api-burst=0"}, err: "--api-burst must not be 0"},
		"Type":            {reason: "A value must have its flag's type.", args: []string{"--name=n", "--poll=soon"}, err: `invalid argument "soon" for "--poll"`},
		"EnvironmentType": {reason: "The error names the variable.", env: map[string]string{"NAME": "n", "POLL": "soon"}, err: "cannot use environment variable POLL"},
		"Unknown":         {reason: "An unknown flag is an error.", args: []string{"--nme=n"}, err: "unknown flag: --nme"},
		"UnknownCommand":  {reason: "An unknown command is an error.", args: []string{"srve"}, err: `unexpected argument "srve"`},
		"FlagOfOther":     {reason: "A command does not have the flags of another one.", args: []string{"stop", "--name=n"}, err: "unknown flag: --name"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newProgram().Parse(tc.args, func(name string) (string, bool) { v, ok := tc.env[name]; return v, ok })
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("\n%s\nParse(...): want error %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("\n%s\nParse(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(serve{})); diff != "" {
				t.Errorf("\n%s\nParse(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestInfo(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"Version": {reason: "A script reads the version.", args: []string{"--version"}, want: []string{"v1.2.3\n"}},
		"Help": {
			reason: "The text describes the program, its commands, and the flags of the first, also without required ones.",
			args:   []string{"--help"},
			want: []string{
				"Usage: program [command] [flags]\n\nServes.\n\nIt has two commands.\n\nCommands:\n  serve\n      Serve until stopped.\n  stop\n      Stop.\n\nFlags:\n",
				"-d, --debug", "Log more. ($DEBUG)", "--hosts HOST", "(default a.example,b.example)", `(default ":8080")`, "--no-probe", "\n\nAPI:\n      --api-rate float",
			},
		},
		"Command": {reason: "A command has a text.", args: []string{"stop", "-h"}, want: []string{"Usage: program stop [flags]\n\nStop.\n\nFlags:\n", "--wait duration"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newProgram().Parse(tc.args, func(string) (string, bool) { return "", false })
			if err == nil {
				t.Fatalf("\n%s\nParse(...): want a text", tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("\n%s\nParse(...): want %q in\n%s", tc.reason, want, err)
				}
			}
		})
	}
}

func TestUnknownType(t *testing.T) {
	p := Program{Name: "program", Commands: []Command{{Flags: &struct {
		stop
		Ports map[string]int
	}{}}}}
	if _, err := p.Parse(nil, func(string) (string, bool) { return "", false }); err == nil || !strings.Contains(err.Error(), "--ports") {
		t.Errorf("Parse(...): want an error that names the flag, got %v", err)
	}
}

func TestUnknownVariable(t *testing.T) {
	p := newProgram()
	p.Vars = nil
	if _, err := p.Parse(nil, func(string) (string, bool) { return "", false }); err == nil || !strings.Contains(err.Error(), "no variable address") {
		t.Errorf("Parse(...): want an error that names the variable, got %v", err)
	}
}

func TestDashed(t *testing.T) {
	for field, want := range map[string]string{"Debug": "debug", "APIRate": "api-rate", "MaxReconcileRate": "max-reconcile-rate", "TLSCertsDir": "tls-certs-dir", "EnableChangelogs": "enable-changelogs"} {
		if got := dashed(field); got != want {
			t.Errorf("dashed(%s): want %s, got %s", field, want, got)
		}
	}
}
