"""A checkpoint's own copy near the card: whole, verified, and made while the old revision still serves."""
