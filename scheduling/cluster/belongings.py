"""What belongs to a workload beside its StatefulSet or Job: its service, the facts of its tenancy, its way in. Pure.

Each is owned by the StatefulSet or Job, by uid, so that the cluster itself takes it away with its owner, whoever
deletes that. So all of them are written after it, when its uid is known; a pod waits for its facts until they come.
"""

import json
from base64 import b32hexencode
from uuid import UUID

from scheduling.cluster.writing import Document, LaunchFact, RouteFact, metadata, object_name, selector, slug
from scheduling.planning.facts import Kind

FACTS_FILE = "tenancy.json"
WEB_PORT = 8888  # where a workspace's notebook or IDE listens
WEB = "web"
LONGEST_HOST_SLUG = 36  # with a dash and 26 letters of the key, a label of 63
VERSIONS = {"StatefulSet": "apps/v1", "Job": "batch/v1"}
INGRESS, HTTP_ROUTE = "ingress", "httproute"


def owner_reference(kind: str, name: str, uid: str) -> Document:
    """The StatefulSet or Job that stands for a workload, as its belongings name it.

    They do not hold up its deletion, which would need rights of its own.
    """
    return {"apiVersion": VERSIONS[kind], "kind": kind, "name": name, "uid": uid}


def belongings(launch: LaunchFact, owner: Document) -> tuple[Document, ...]:
    """All but the way in, in the order in which they are applied; `owner` is an owner reference."""
    found = [facts_document(launch, owner)] if launch.facts else []
    if launch.kind is Kind.WORKSPACE:
        found.append(service_document(launch, owner))
    return tuple(found)


def route_document(launch: LaunchFact, owner: Document) -> Document | None:
    """The way in from outside; None where the cluster has none, or the workload is no workspace."""
    if launch.route is None or launch.kind is not Kind.WORKSPACE:
        return None
    made = http_route if launch.route.kind == HTTP_ROUTE else ingress
    return made(launch, launch.route, owner)


def host_name(name: str, workload: UUID, domain: str) -> str:
    """Where a workspace answers. The row's whole key is part of it, so that no two teams' workspaces ever share one."""
    key = b32hexencode(workload.bytes).decode().rstrip("=").lower()
    return f"{slug(name)[:LONGEST_HOST_SLUG].rstrip('-')}-{key}.{domain}"


def service_document(launch: LaunchFact, owner: Document) -> Document:
    """The headless service that a StatefulSet names; it gives the pod its host name, and a route its other end."""
    ports = [{"name": WEB, "port": WEB_PORT, "protocol": "TCP", "targetPort": WEB_PORT}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": owned(launch, owner),
        "spec": {"clusterIP": "None", "selector": selector(launch), "ports": ports},
    }


def facts_document(launch: LaunchFact, owner: Document) -> Document:
    text = json.dumps(dict(launch.facts), indent=2, ensure_ascii=False) + "\n"
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": owned(launch, owner), "data": {FACTS_FILE: text}}


def ingress(launch: LaunchFact, route: RouteFact, owner: Document) -> Document:
    """TLS without a secret of its own: the controller's certificate for the whole domain serves."""
    host = host_name(launch.name, launch.workload, route.domain)
    service = {"name": object_name(launch.name, launch.workload), "port": {"name": WEB}}
    path = {"path": "/", "pathType": "Prefix", "backend": {"service": service}}
    spec: Document = {"tls": [{"hosts": [host]}], "rules": [{"host": host, "http": {"paths": [path]}}]}
    if route.through:
        spec["ingressClassName"] = route.through
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": owned(launch, owner),
        "spec": spec,
    }


def http_route(launch: LaunchFact, route: RouteFact, owner: Document) -> Document:
    namespace, _, gateway = route.through.rpartition("/")
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gateway}
    backend = {"name": object_name(launch.name, launch.workload), "port": WEB_PORT}
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": owned(launch, owner),
        "spec": {
            "parentRefs": [parent | ({"namespace": namespace} if namespace else {})],
            "hostnames": [host_name(launch.name, launch.workload, route.domain)],
            "rules": [{"backendRefs": [backend]}],
        },
    }


def owned(launch: LaunchFact, owner: Document) -> Document:
    return metadata(launch) | {"ownerReferences": [owner]}
