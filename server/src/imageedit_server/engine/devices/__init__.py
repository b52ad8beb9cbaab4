"""One module for each kind of device."""
