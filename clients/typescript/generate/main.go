// Command generate writes src/api.ts of the TypeScript client from the OpenAPI document:
// a type for each schema, and the method, path and status of each operation.
//
// Run it from the root of the project: go run ./clients/typescript/generate
package main

import (
	"fmt"
	"os"

	"github.com/fiscalhub/fiscalhub/openapi"
)

// output is the generated file, relative to the root of the project.
const output = "clients/typescript/src/api.ts"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run() error {
	document, err := openapi.JSON()
	if err != nil {
		return err
	}
	text, err := generate(document)
	if err != nil {
		return err
	}
	return os.WriteFile(output, []byte(text), 0o644) //nolint:gosec // a source file that everybody may read
}
