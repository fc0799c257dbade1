// Unpacks the Python that is in this module into a folder.
package main

import (
	"fmt"
	"os"

	"github.com/kluctl/go-embed-python/python"
)

func main() {
	if _, err := python.NewEmbeddedPythonWithTmpDir(os.Args[1], false); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
