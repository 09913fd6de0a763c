"""lab.probe"""
