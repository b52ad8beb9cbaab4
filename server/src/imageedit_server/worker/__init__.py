"""The process that owns the card, and the supervisor that keeps one of it alive."""
