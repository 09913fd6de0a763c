"""lab.capture"""
