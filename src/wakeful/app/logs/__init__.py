"""Log lines on standard error and in memory, with secrets redacted."""
