"""ui.cells"""
