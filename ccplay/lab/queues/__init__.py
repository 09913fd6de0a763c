"""lab.queues"""
