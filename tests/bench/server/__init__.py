"""What the server does with the card's time, beside other servers around the same engine: `make bench-server`."""
