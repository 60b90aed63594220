"""Tables, curves and statistics of finished sessions."""
