// Loads docker-compose.yml with Compose's own loader (`npm run check:compose`). First without any variable: the loader
// must ask for each secret by name. Then with all of them, without and with the profile sandbox.
package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
)

var missing = regexp.MustCompile(`required variable (\w+) is missing a value: (.+)`)

func load(file string, env []string, profiles ...string) ([]string, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(env), cli.WithProfiles(profiles))
	if err != nil {
		return nil, err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return nil, err
	}
	return project.ServiceNames(), nil
}

func check(file string) error {
	_, err := load(file, nil)
	if err == nil {
		return fmt.Errorf("it loads without any secret")
	}
	var env []string
	for _, found := range missing.FindAllStringSubmatch(err.Error(), -1) {
		if name := found[1]; !slices.Contains(env, name+"=x") {
			env = append(env, name+"=x")
			fmt.Printf("asks for %s: %s\n", name, found[2])
		}
	}
	if len(env) == 0 {
		return err
	}
	remote, err := load(file, env)
	if err != nil {
		return err
	}
	sandbox, err := load(file, env, "sandbox")
	if err != nil {
		return err
	}
	if len(sandbox) <= len(remote) {
		return fmt.Errorf("the profile sandbox adds nothing")
	}
	fmt.Printf("loads %s\n", strings.Join(remote, ", "))
	added := slices.DeleteFunc(sandbox, func(name string) bool { return slices.Contains(remote, name) })
	fmt.Printf("with --profile sandbox also %s\n", strings.Join(added, ", "))
	return nil
}

func main() {
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
