"""report.data"""
