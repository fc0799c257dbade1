// github.com/coder/acp-go-sdk 0.13.5: the annotations of a text are read, and lost when it is written again.
// Prints: read: true, written: {"text":"for you","type":"text"}
package main

import (
	"encoding/json"
	"fmt"

	"github.com/coder/acp-go-sdk"
)

func main() {
	var block acp.ContentBlock
	sent := `{"type":"text","text":"for you","annotations":{"audience":["user"],"priority":0.5}}`
	if err := json.Unmarshal([]byte(sent), &block); err != nil {
		panic(err)
	}
	written, _ := json.Marshal(block)
	fmt.Printf("read: %v, written: %s\n", block.Text.Annotations != nil, written)
}
