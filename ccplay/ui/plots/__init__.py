"""ui.plots"""
