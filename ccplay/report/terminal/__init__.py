"""report.terminal"""
