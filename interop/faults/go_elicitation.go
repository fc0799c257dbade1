// github.com/coder/acp-go-sdk 0.13.5: the session that a form belongs to is lost, although each belongs to a session or a
// request. Prints: {"message":"Who?","mode":"form","requestedSchema":{"properties":{},"type":"object"}}
package main

import (
	"encoding/json"
	"fmt"

	"github.com/coder/acp-go-sdk"
)

func main() {
	var request acp.UnstableCreateElicitationRequest
	sent := `{"mode":"form","sessionId":"s1","message":"Who?","requestedSchema":{"type":"object","properties":{}}}`
	if err := json.Unmarshal([]byte(sent), &request); err != nil {
		panic(err)
	}
	written, _ := json.Marshal(request)
	fmt.Println(string(written))
}
