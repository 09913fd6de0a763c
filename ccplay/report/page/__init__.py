"""report.page"""
