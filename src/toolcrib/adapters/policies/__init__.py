"""Who may do what: everybody, rules in Cedar, or whatever a webhook answers."""
