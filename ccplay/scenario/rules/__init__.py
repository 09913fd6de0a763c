"""scenario.rules"""
