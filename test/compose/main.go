// Loads docker-compose.yml with Compose's own loader, without Docker.
//
//	compose <file>            the checks of `npm run check:compose`: without any variable the loader must ask for each
//	                          secret by name; with all of them it loads, without and with each profile
//	compose --json <file>     the loaded project with every profile, by the variables of this process
//	compose --pinned <file>   fails for each image without a digest, by the variables of this process and of .env
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

var profiles = []string{"sandbox", "observability"}

var missing = regexp.MustCompile(`required variable (\w+) is missing a value: (.+)`)

func load(file string, env []string, options ...cli.ProjectOptionsFn) (*types.Project, error) {
	all := append([]cli.ProjectOptionsFn{cli.WithWorkingDirectory(filepath.Dir(file)), cli.WithEnv(env)}, options...)
	loaded, err := cli.NewProjectOptions([]string{file}, all...)
	if err != nil {
		return nil, err
	}
	return loaded.LoadProject(context.Background())
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
	project, err := load(file, env)
	if err != nil {
		return err
	}
	remote := project.ServiceNames()
	fmt.Printf("loads %s\n", strings.Join(remote, ", "))
	for _, profile := range profiles {
		more, err := load(file, env, cli.WithProfiles([]string{profile}))
		if err != nil {
			return err
		}
		added := slices.DeleteFunc(more.ServiceNames(), func(name string) bool { return slices.Contains(remote, name) })
		if len(added) == 0 {
			return fmt.Errorf("the profile %s adds nothing", profile)
		}
		fmt.Printf("with --profile %s also %s\n", profile, strings.Join(added, ", "))
	}
	return nil
}

func printJSON(file string) error {
	project, err := load(file, os.Environ(), cli.WithProfiles(profiles))
	if err != nil {
		return err
	}
	text, err := project.MarshalJSON()
	if err != nil {
		return err
	}
	fmt.Println(string(text))
	return nil
}

func checkPinned(file string) error {
	project, err := load(file, os.Environ(), cli.WithProfiles(profiles), cli.WithEnvFiles(), cli.WithDotEnv)
	if err != nil {
		return err
	}
	var open []string
	for _, service := range project.Services {
		images := []string{service.Image}
		if service.Build != nil {
			images = nil
			for _, value := range service.Build.Args {
				if value != nil {
					images = append(images, *value)
				}
			}
		}
		for _, image := range images {
			if !strings.Contains(image, "@sha256:") && !slices.Contains(open, image) {
				open = append(open, image)
			}
		}
	}
	slices.Sort(open)
	if len(open) > 0 {
		return fmt.Errorf("without a digest: %s (docs/operations.md, \"Pin the images\")", strings.Join(open, ", "))
	}
	fmt.Println("every image has a digest")
	return nil
}

func main() {
	act, file := check, os.Args[len(os.Args)-1]
	switch {
	case slices.Contains(os.Args, "--json"):
		act = printJSON
	case slices.Contains(os.Args, "--pinned"):
		act = checkPinned
	}
	if file == "--pinned" || file == "--json" {
		file = os.Args[len(os.Args)-2]
	}
	if err := act(file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
