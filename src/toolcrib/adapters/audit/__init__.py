"""Where the audit is kept."""
