"""lab.links"""
