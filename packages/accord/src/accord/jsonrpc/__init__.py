"""JSON-RPC 2.0 as ACP speaks it, as pure values: no event loop, no ACP."""
