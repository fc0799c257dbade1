"""Active checks of an agent: scenarios that drive it over a raw link, while the passive checks watch."""
