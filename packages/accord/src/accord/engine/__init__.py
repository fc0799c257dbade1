"""Messages between two sides: order, cancellation, backpressure and the end of a link."""
