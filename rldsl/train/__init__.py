"""One pack of sessions in one process: collect, learn, log, checkpoint, resume."""
