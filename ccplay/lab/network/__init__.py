"""lab.network"""
