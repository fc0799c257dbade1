"""A proxy of ours that passes everything on, as its author would begin it."""

import accord

accord.Proxy("pass").run()
