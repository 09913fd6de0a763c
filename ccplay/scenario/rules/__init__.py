"""What must hold in a scenario beyond single values: names that exist, an order that can happen."""
