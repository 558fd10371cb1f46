"""A kind that a server does not define, and then does again: nothing of its absence counts against its objects."""

from __future__ import annotations

import json
from threading import Condition
from typing import Any

from scheduling.cluster.kept import Kept
from scheduling.cluster.port import ClusterError
from scheduling.providers.cluster_api import DEPLOYMENTS

POOL = {
    "metadata": {"name": "h100", "namespace": "fleet", "uid": "u-1", "resourceVersion": "7"},
    "spec": {"replicas": 2, "template": {"metadata": {"labels": {"node.cluster.x-k8s.io/pool": "h100"}}}},
}


class Api:
    """Lists one MachineDeployment, as long as its kind is defined."""

    defined, version = True, 10

    def ask(self, method: str, path: str, **_: Any) -> bytes:
        if not self.defined:
            raise ClusterError("The cluster refused (404): page not found", status=404, retry=False)
        self.version += 1
        meta = {"resourceVersion": str(self.version)}
        return json.dumps({"kind": "MachineDeploymentList", "metadata": meta, "items": [POOL]}).encode()


def test_a_kind_that_is_defined_again_brings_the_objects_that_it_had() -> None:
    api, kept = Api(), Kept(DEPLOYMENTS, lambda changes: None, Condition())
    kept.read(api)
    before = kept.shelf.facts
    api.defined = False
    kept.read(api)
    absent, problems = kept.shelf.facts, kept.problems
    api.defined = True
    kept.read(api)

    assert [size.pool for size in before] == ["h100"]
    assert (absent, [problem.where for problem in problems]) == ((), ["MachineDeployment"])
    assert (kept.shelf.facts, kept.problems) == (before, ())
