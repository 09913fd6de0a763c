"""scenario.file"""
