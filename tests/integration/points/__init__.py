"""Named points of the product at which a process of a test breaks, on request.

The request is a file in the folder that POINTS_FOLDER names: `look` or `put` with the name of the cluster or workload
that is to suffer and how: {"name": "poison", "deed": "raise"}. The wrapping is done by a Django application that only
the tests' settings install.
"""
