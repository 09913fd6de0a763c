"""scenario.fields"""
