module accord-interop-python

go 1.26

require github.com/kluctl/go-embed-python v0.0.0-3.14.6-20260610-1
