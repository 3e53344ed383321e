"""What every HTTP door shares: the gate in front of them, the table that makes routes, bodies, parameters, answers."""
