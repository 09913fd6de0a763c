"""lab.traffic"""
