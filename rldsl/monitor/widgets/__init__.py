"""The widgets of the monitor's screens."""
