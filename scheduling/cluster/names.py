"""The names that Berth writes on Kubernetes objects, and the few of others' that it reads in more than one place."""

PREFIX = "berth.portal/"

FIELD_MANAGER = "berth"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "berth"

# Labels of ours
WORKLOAD = PREFIX + "workload"  # the row's uuid
TEAM = PREFIX + "team"
OWNER = PREFIX + "owner"  # the member's number
STOCK = PREFIX + "stock"  # which kind of cards a node has; written where the cluster queues with Kueue
POOL = PREFIX + "pool"  # an operator's own word for a node's pool; wins over the provider's

# Annotations of ours
ATTEMPT = PREFIX + "attempt"
CUTTING_TO = PREFIX + "cutting-to"
LEAVING = PREFIX + "leaving"
DROPPED = PREFIX + "dropped"  # the provider has been asked to take the node away

# Others'
QUEUE = "kueue.x-k8s.io/queue-name"
MIG_CONFIG = "nvidia.com/mig.config"
MIG_STATE = "nvidia.com/mig.config.state"
EXPORTER = "app=nvidia-dcgm-exporter"
EXPORTER_PORT = 9400
MACHINE = "cluster.x-k8s.io/machine"
DELETE_MACHINE = "cluster.x-k8s.io/delete-machine"
CLUSTER_API_POOL = "node.cluster.x-k8s.io/pool"
CLUSTER_API_DEPLOYMENT = "cluster.x-k8s.io/deployment-name"

OUR_PODS = f"{MANAGED_BY}={MANAGER},{WORKLOAD}"
"""A label selector: our objects that stand for a workload."""
