"""A small honest Kubernetes in one process of its own, for the demo and the tests."""

from .clock import ManualClock, SharedClock
from .cluster import SimulatedCluster
from .delays import Delays
from .seeding import fleet_documents, read_documents

__all__ = ["Delays", "ManualClock", "SharedClock", "SimulatedCluster", "fleet_documents", "read_documents"]
