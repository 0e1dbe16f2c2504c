"""Programs that are not Python, such as helm and kube-apiserver: built from pinned Go modules.

The cache belongs to the user and is shared by all processes. A program that PATH has is used as it
is. Which programs exist is decided by the modules that use this package.
"""
