"""Training of one pack of sessions in one process: collect, learn, log, evaluate, checkpoint, resume."""
