// Renders a chart as Helm does: the same template engine and the same functions, as far as the chart
// uses them. Helm itself is in no archive that the tests install from.
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go run render.go CHART VALUES.yaml
//
// Prints the documents, or says what is wrong and exits with 1.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type object = map[string]interface{}

func stop(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func readObject(path string) object {
	text, err := os.ReadFile(path)
	stop(err)
	read := object{}
	stop(yaml.Unmarshal(text, &read))
	return read
}

// Puts `over` over `under`, key by key.
func merge(under, over object) object {
	for key, value := range over {
		deeper, isObject := value.(object)
		if there, both := under[key].(object); isObject && both {
			under[key] = merge(there, deeper)
		} else {
			under[key] = value
		}
	}
	return under
}

func main() {
	chart := os.Args[1]
	values := merge(readObject(filepath.Join(chart, "values.yaml")), readObject(os.Args[2]))
	about := readObject(filepath.Join(chart, "Chart.yaml"))
	context := object{
		"Values":  values,
		"Release": object{"Name": "lab", "Namespace": "traces", "Service": "Helm"},
		"Chart":   object{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
	}
	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["include"] = func(name string, data interface{}) (string, error) {
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["required"] = func(why string, value interface{}) (interface{}, error) {
		if text, isText := value.(string); value == nil || (isText && text == "") {
			return nil, fmt.Errorf("%s", why)
		}
		return value, nil
	}
	functions["fail"] = func(why string) (string, error) { return "", fmt.Errorf("%s", why) }
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	all.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	stop(err)
	sort.Strings(files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		stop(err)
		_, err = all.New(filepath.Base(file)).Parse(string(text))
		stop(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, ".yaml") && !strings.HasSuffix(file, ".txt") {
			continue
		}
		var out strings.Builder
		stop(all.ExecuteTemplate(&out, filepath.Base(file), context))
		if strings.HasSuffix(file, ".yaml") {
			fmt.Printf("---\n# %s\n%s", filepath.Base(file), out.String())
		}
	}
}
