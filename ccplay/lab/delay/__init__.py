"""lab.delay"""
